#include "skein/ops/linear/operands_cuda.h"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

#include "skein/ops/linear/adjacent.h"
#include "skein/ops/linear/fp8_parts_cuda.h"

namespace skein {

using namespace fp8_parts;  // NOLINT(google-build-using-namespace)

namespace {

// ---- kernels: a block takes a tile of a part

constexpr Tile kRound = {4 * kWarps, 32 * kPack};  // of round_parts
constexpr Tile kTranspose = {16 * kWarps, 8 * kPack};

// Packs four codes into a word, the first one in the lowest bits.
__device__ uint32_t round_four(float a, float b, float c, float d, const Fp8Format& format) {
#ifdef __CUDA_ARCH__
  const __nv_fp8_interpretation_t type = format.mantissa_bits == 3 ? __NV_E4M3 : __NV_E5M2;
  const uint32_t low = __nv_cvt_float2_to_fp8x2(make_float2(a, b), __NV_SATFINITE, type);
  const uint32_t high = __nv_cvt_float2_to_fp8x2(make_float2(c, d), __NV_SATFINITE, type);
  return low | high << 16;
#else
  return to_fp8(a, format) | to_fp8(b, format) << 8 | to_fp8(c, format) << 16 |
         static_cast<uint32_t>(to_fp8(d, format)) << 24;
#endif
}

struct Scale {
  Fp8Format format;
  float scale, inverse;
};

template <bool packed>
__device__ void store(uint8_t* to, const float (&values)[kPack], int64_t, const Scale& scale) {
  float scaled[kPack];
  for (int i = 0; i < kPack; ++i) scaled[i] = values[i] * scale.scale;
  Pack<uint32_t, 2> codes;
  codes.at[0] = round_four(scaled[0], scaled[1], scaled[2], scaled[3], scale.format);
  codes.at[1] = round_four(scaled[4], scaled[5], scaled[6], scaled[7], scale.format);
  *reinterpret_cast<Pack<uint32_t, 2>*>(to) = codes;
}
template <bool packed>
__device__ void store(bfloat16* to, const float (&values)[kPack], int64_t count,
                      const Scale& scale) {
  float rounded[kPack];
  for (int i = 0; i < kPack; ++i) {
    rounded[i] = round_to_fp8(values[i] * scale.scale, scale.format) * scale.inverse;
  }
  const auto pack = from_floats<bfloat16>(rounded);
  if constexpr (packed) {
    store_pack_global(to, pack);
  } else {
    for (int i = 0; i < kPack && i < count; ++i) to[i] = pack.at[i];
  }
}

// A thread turns 4 x 8 elements. Words of four rows of one column go to shared memory, of which
// each row holds a column. Where 16 bytes of it lie is shifted by the column, against bank
// conflicts.
__device__ void store_transposed(const OperandPart& part, int64_t first_row, int64_t first_col,
                                 const float (&values)[4][kPack], const Scale& scale) {
  constexpr int kUnits = kTranspose.rows / 16;
  __shared__ Pack<uint32_t, 4> columns[kTranspose.cols][kUnits];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (int i = 0; i < kPack; ++i) {
    columns[lane % 8 * kPack + i][warp ^ (lane % 8)].at[lane / 8] =
        round_four(values[0][i] * scale.scale, values[1][i] * scale.scale,
                   values[2][i] * scale.scale, values[3][i] * scale.scale, scale.format);
  }
  __syncthreads();
  for (int i = 0; i < kTranspose.cols * kUnits / kThreads; ++i) {
    const int at = i * kThreads + threadIdx.x, col = at / kUnits, unit = at % kUnits;
    const int64_t to_row = first_col + col, to_col = first_row + unit * 16;
    if (to_row >= part.cols || to_col >= part.rows) continue;  // rows: a multiple of 16
    *reinterpret_cast<Pack<uint32_t, 4>*>(part.transposed + to_row * part.transposed_stride +
                                          to_col) = columns[col][unit ^ (col / kPack)];
  }
}

// The last tiles come first: whatever wrote the parts, or found their largest magnitudes, has left
// those in the L2.
template <typename To, bool packed>
__global__ void __launch_bounds__(kThreads) round_parts(PartList list) {
  wait_for_previous_kernel();
  constexpr int kLoads = 4;
  const unsigned tile_of_all = gridDim.x - 1 - blockIdx.x;
  const int which = part_of_block(list, tile_of_all);
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const OperandPart& part = list.parts[which];
  const unsigned block = tile_of_all - list.first_block[which];
  const bool transposed = std::is_same_v<To, uint8_t> && part.transposed != nullptr;
  const Tile tile = transposed ? kTranspose : kRound;
  const unsigned tiles = static_cast<unsigned>((part.cols + tile.cols - 1) / tile.cols);
  const int64_t first_row = int64_t{block / tiles} * tile.rows;
  const int64_t first_col = int64_t{block % tiles} * tile.cols;
  const int64_t row = first_row + (transposed ? warp * 16 + lane / 8 * 4 : warp);
  const int64_t col = first_col + (transposed ? lane % 8 : lane) * kPack;
  const int step = transposed ? 1 : kWarps;
  Pack<bfloat16, kPack> packs[kLoads];
  for (int i = 0; i < kLoads; ++i) packs[i] = load<packed>(part, row + i * step, col);

  Scale scale = {list.formats[part.group]};
  const int exponent = fp8_scale_exponent(*list.largest[part.group], scale.format);
  scale.scale = power_of_two_f32(exponent);
  scale.inverse = power_of_two_f32(-exponent);
  if (blockIdx.x == 0 && static_cast<int>(threadIdx.x) < list.num_groups) {
    const int g = static_cast<int>(threadIdx.x);
    list.inverse_scales[g * kScaleStride] =
        power_of_two_f32(-fp8_scale_exponent(*list.largest[g], list.formats[g]));
  }

  float values[kLoads][kPack];
  for (int i = 0; i < kLoads; ++i) to_floats(values[i], packs[i]);
  if constexpr (std::is_same_v<To, uint8_t>) {
    if (transposed) store_transposed(part, first_row, first_col, values, scale);
  }
  if (part.to == nullptr) return;
  for (int i = 0; i < kLoads; ++i) {
    if (row + i * step >= part.rows || col >= part.cols) continue;
    To* const to = static_cast<To*>(part.to) + (row + i * step) * part.to_stride + col;
    store<packed>(to, values[i], part.cols - col, scale);
  }
}

}  // namespace

void CudaLinearOperands::make() const {
  if (!are_copies()) return;
  PartList list = {};
  list.inverse_scales = inverse_scales();
  list.num_groups = static_cast<int>(groups_.size());
  bool packed = true;
  for (int g = 0; g < static_cast<int>(groups_.size()); ++g) {
    const Group& group = groups_[g];
    list.formats[g] = group.format;
    list.largest[g] = fp8_largest_of(call_, op_, g);
    if (group.is_kept) continue;
    for (int i = group.begin; i < group.begin + group.count; ++i) {
      const View& from = call_.inputs[i];
      void* const to = copy_of(i, false);
      list.parts[list.size++] = {from.as<const bfloat16>(),
                                 from.row_stride,
                                 from.rows(),
                                 from.cols(),
                                 to,
                                 group.as_is.row_stride,
                                 static_cast<uint8_t*>(copy_of(i, true)),
                                 group.transposed.row_stride,
                                 g};
      packed = packed && are_packable(kPack, from) &&
               (in_8_bits_ || reinterpret_cast<uintptr_t>(to) % sizeof(Pack<bfloat16, kPack>) == 0);
    }
  }
  set_blocks(list, kRound, kTranspose);
  const auto round = in_8_bits_ ? packed ? round_parts<uint8_t, true> : round_parts<uint8_t, false>
                     : packed ? round_parts<bfloat16, true>
                                : round_parts<bfloat16, false>;
  launch(call_, list.first_block[list.size], kThreads, round, list);
}

void run_round_weights_on_cuda(const KernelCall& call) {
  const size_t weights = call.inputs.size() - 2;
  find_largest_of_inputs(call, weights, call.outputs[0]);
  const View& rounded = call.outputs[1];
  auto* to = rounded.as<uint8_t>();
  uint8_t* transposed = to + rounded.shape.num_elements();
  int64_t rows = 0;
  for (size_t i = 0; i < weights; ++i) rows += call.inputs[i].rows();
  PartList list = {};
  list.formats[0] = kE4M3;
  list.largest[0] = call.outputs[0].as<const float>();
  bool packed = true;
  for (size_t i = 0; i < weights; ++i) {
    const View& w = call.inputs[i];
    list.parts[list.size++] = {w.as<const bfloat16>(),
                               w.row_stride,
                               w.rows(),
                               w.cols(),
                               to,
                               w.cols(),
                               transposed,
                               rows,
                               0};
    packed = packed && are_packable(kPack, w);
    to += w.rows() * w.cols();
    transposed += w.rows();
  }
  set_blocks(list, kRound, kTranspose);
  launch(call, list.first_block[list.size], kThreads,
         packed ? round_parts<uint8_t, true> : round_parts<uint8_t, false>, list);
}

}  // namespace skein
