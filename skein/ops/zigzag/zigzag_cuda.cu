#include "skein/ops/cuda/launch_cuda.h"

namespace skein {
namespace {

using namespace cuda;  // NOLINT(google-build-using-namespace)

constexpr int kThreads = 256;
constexpr int kUnits = 4;  // a thread's loads in flight

// The pieces of all sequences. A piece has `rows` rows of `cols` units.
struct ZigzagPieces {
  int64_t sequences, parts, rows, cols;
  bool inverse;
};

// A unit is what a thread moves at once. blockIdx.y steps over the rows in zigzag order.
template <typename Unit>
__global__ void __launch_bounds__(kThreads)
    move_pieces(const Unit* x, int64_t x_stride, Unit* y, int64_t y_stride, ZigzagPieces pieces) {
  wait_for_previous_kernel();
  const int64_t of_rank = 2 * pieces.sequences, of_sequence = 2 * pieces.parts;
  const int64_t first = int64_t{blockIdx.x} * (kThreads * kUnits) + threadIdx.x;
  const int64_t rows = pieces.parts * of_rank * pieces.rows;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const int64_t piece = row / pieces.rows, rank = piece / of_rank;
    const int64_t sequence = piece % of_rank / 2;
    const int64_t in_sequence = piece % 2 == 0 ? rank : of_sequence - 1 - rank;
    const int64_t natural =
        (sequence * of_sequence + in_sequence) * pieces.rows + row % pieces.rows;
    const Unit* from = x + (pieces.inverse ? row : natural) * x_stride;
    Unit* to = y + (pieces.inverse ? natural : row) * y_stride;
    Unit units[kUnits];
    for (int i = 0; i < kUnits; ++i) {
      const int64_t col = first + i * kThreads;
      if (col < pieces.cols) units[i] = from[col];
    }
    for (int i = 0; i < kUnits; ++i) {
      const int64_t col = first + i * kThreads;
      if (col < pieces.cols) to[col] = units[i];
    }
  }
}

// Strides and columns are in bytes.
template <typename Unit>
void launch_as(const KernelCall& call, int64_t x_stride, int64_t y_stride, ZigzagPieces pieces) {
  pieces.cols /= sizeof(Unit);
  const int64_t rows = 2 * pieces.parts * pieces.sequences * pieces.rows;
  const dim3 grid(blocks_for(pieces.cols, kThreads * kUnits),
                  static_cast<unsigned>(rows < 65535 ? rows : 65535));
  launch(call, grid, kThreads, move_pieces<Unit>, call.inputs[0].as<const Unit>(),
         x_stride / sizeof(Unit), call.outputs[0].as<Unit>(), y_stride / sizeof(Unit), pieces);
}

void run(const KernelCall& call) {
  const View &x = call.inputs[0], &y = call.outputs[0];
  const int64_t parts = call.attrs.integer("parts"), size = size_of(x.dtype);
  const int64_t length = call.attrs.integer("sequence_length");
  ZigzagPieces pieces{.sequences = x.shape.dim(0) / length,
                      .parts = parts,
                      .rows = length / (2 * parts),
                      .cols = size * (x.shape.num_elements() / x.shape.dim(0)),
                      .inverse = call.attrs.flag("inverse")};
  int64_t x_stride = size * x.row_stride, y_stride = size * y.row_stride;
  if (x.is_contiguous() && y.is_contiguous()) {  // a piece is one long row
    pieces.cols *= pieces.rows;
    pieces.rows = 1;
    x_stride = y_stride = pieces.cols;
  }
  const auto bits = reinterpret_cast<uintptr_t>(x.data) | reinterpret_cast<uintptr_t>(y.data) |
                    static_cast<uintptr_t>(x_stride | y_stride | pieces.cols);
  if (bits % sizeof(uint4) == 0) return launch_as<uint4>(call, x_stride, y_stride, pieces);
  if (bits % sizeof(uint2) == 0) return launch_as<uint2>(call, x_stride, y_stride, pieces);
  if (bits % sizeof(uint32_t) == 0) return launch_as<uint32_t>(call, x_stride, y_stride, pieces);
  launch_as<uint16_t>(call, x_stride, y_stride, pieces);
}

}  // namespace

void add_zigzag_cuda_kernels(KernelTable& table) { table["zigzag"] = {.run = run}; }

}  // namespace skein
