#include "skein/ops/linear/fp8_cpu.h"

#include <algorithm>

#include "skein/base/text/units.h"
#include "skein/ops/largest.h"
#include "skein/ops/linear/fp8_operands.h"

namespace skein {
namespace {

constexpr int64_t kAlignment = 64;

int64_t dense_bytes(const View& view) { return round_up(view.num_bytes(), kAlignment); }

std::vector<Fp8Group> groups_of(const KernelCall& call, std::string_view op) {
  return fp8_groups(op, static_cast<int>(call.attrs.integer("parts")));
}

// Whether a group is weights that were rounded before.
bool is_kept(const KernelCall& call, std::string_view op, size_t group) {
  return group == kFp8Weights && has_kept_weights(call.attrs, op);
}

const bfloat16* row_of(const View& view, int64_t row) {
  return view.as<const bfloat16>() + row * view.row_stride;
}

void round_view(const View& from, const View& to, int exponent, const Fp8Format& format) {
  const float scale = power_of_two_f32(exponent), inverse = power_of_two_f32(-exponent);
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < from.rows(); ++row) {
    const bfloat16* x = row_of(from, row);
    bfloat16* y = to.as<bfloat16>() + row * to.row_stride;
    for (int64_t col = 0; col < from.cols(); ++col) {
      y[col] = bfloat16(round_to_fp8(static_cast<float>(x[col]) * scale, format) * inverse);
    }
  }
}

}  // namespace

KernelCall with_fp8_operands(const KernelCall& call, std::string_view op) {
  KernelCall rounded = call;
  auto* next = static_cast<char*>(call.scratch);
  const auto groups = groups_of(call, op);
  for (size_t g = 0; g < groups.size(); ++g) {
    const bool kept = is_kept(call, op, g);
    char* weights = kept ? call.inputs.back().as<char>() : nullptr;
    for (int i = groups[g].begin; i < groups[g].begin + groups[g].count; ++i) {
      View& view = rounded.inputs[i];
      view = View::contiguous(kept ? weights : next, view.dtype, view.shape);
      (kept ? weights : next) += kept ? view.num_bytes() : dense_bytes(view);
    }
  }
  rounded.scratch = next;
  return rounded;
}

int64_t fp8_operand_bytes(const KernelCall& call, std::string_view op) {
  int64_t bytes = 0;
  const auto groups = groups_of(call, op);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (is_kept(call, op, g)) continue;
    for (int i = 0; i < groups[g].count; ++i)
      bytes += dense_bytes(call.inputs[groups[g].begin + i]);
  }
  return bytes;
}

void round_fp8_operands(const KernelCall& call, std::string_view op) {
  const KernelCall rounded = with_fp8_operands(call, op);
  const auto groups = groups_of(call, op);
  for (size_t g = 0; g < groups.size(); ++g) {
    if (is_kept(call, op, g)) continue;
    const Fp8Group& group = groups[g];
    const int exponent =
        fp8_scale_exponent(*fp8_largest_of(call, op, static_cast<int>(g)), group.format);
    for (int i = group.begin; i < group.begin + group.count; ++i) {
      round_view(call.inputs[i], rounded.inputs[i], exponent, group.format);
    }
  }
}

void run_round_weights(const KernelCall& call) {
  const size_t weights = call.inputs.size() - 2;
  float largest = 0;
  for (size_t i = 0; i < weights; ++i) {
    largest = std::max(largest, largest_magnitude(call.inputs[i]));
  }
  *call.outputs[0].as<float>() = largest;
  const int exponent = fp8_scale_exponent(largest, kE4M3);
  auto* next = call.outputs[1].as<char>();
  for (size_t i = 0; i < weights; ++i) {
    const View to = View::contiguous(next, DType::kBF16, call.inputs[i].shape);
    round_view(call.inputs[i], to, exponent, kE4M3);
    next += to.num_bytes();
  }
}

void run_fp8_largest(const KernelCall& call) {
  float largest = 0;
  for (const View& x : call.inputs) {
    largest =
        std::max(largest, x.dtype == DType::kF32 ? *x.as<const float>() : largest_magnitude(x));
  }
  *call.outputs[0].as<float>() = largest;
}

}  // namespace skein
