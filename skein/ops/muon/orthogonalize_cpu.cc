#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "skein/ops/muon/orthogonalize_cpu.cc"
#include "hwy/foreach_target.h"
#include "skein/base/error.h"
#include "skein/base/numbers/exact_sum.h"
#include "skein/ir/kernel.h"
#include "skein/ops/matmul/matmul_cpu.h"
#include "skein/ops/muon/muon.h"
#include "skein/ops/muon/orthogonalize.h"
#include "skein/ops/simd/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace skein::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;
namespace sm = simd::HWY_NAMESPACE;
using sm::F32;
using sm::VF32;

template <typename T>
double squares_of(const void* x, int64_t begin, int64_t count) {
  const T* at = static_cast<const T*>(x) + begin;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const auto value = static_cast<double>(static_cast<float>(at[i]));
    sum += value * value;
  }
  return sum;
}

double squares(const View& x, int64_t begin, int64_t count) {
  return x.dtype == DType::kF32 ? squares_of<float>(x.data, begin, count)
                                : squares_of<bfloat16>(x.data, begin, count);
}

// to = (a from + b other) / divisor; without `other` it counts as zero.
template <typename T, typename From>
void combine_as(T* to, const From* from, const float* other, float a, float b, float divisor,
                size_t count) {
  const F32 d;
  const size_t step = hn::Lanes(d);
  const VF32 factor = hn::Set(d, a), of_other = hn::Set(d, b), under = hn::Set(d, divisor);
  for (size_t i = 0; i < count; i += step) {
    const size_t n = HWY_MIN(step, count - i);
    VF32 sum = hn::Mul(factor, sm::load(d, from + i, n));
    if (other != nullptr) sum = hn::MulAdd(of_other, sm::load(d, other + i, n), sum);
    if (divisor != 1) sum = hn::Div(sum, under);
    sm::store(sum, d, to + i, n);
  }
}

void combine(DType dtype, void* to, const void* from, const float* other, float a, float b,
             float divisor, int64_t begin, int64_t count) {
  const float* others = other == nullptr ? nullptr : other + begin;
  if (dtype == DType::kF32) {
    combine_as(static_cast<float*>(to) + begin, static_cast<const float*>(from) + begin, others, a,
               b, divisor, count);
  } else {
    combine_as(static_cast<bfloat16*>(to) + begin, static_cast<const bfloat16*>(from) + begin,
               others, a, b, divisor, count);
  }
}

}  // namespace
// NOLINTNEXTLINE(google-readability-namespace-comments)
}  // namespace skein::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace skein {
namespace {

HWY_EXPORT(squares);
HWY_EXPORT(combine);

constexpr int64_t kSegmentElements = 16384;

// One matrix on its way to being orthogonal: X, in the place of the result, and the factors.
class Iteration {
 public:
  explicit Iteration(const KernelCall& call)
      : sizes_(call.outputs[0].shape),
        dtype_(call.outputs[0].dtype),
        places_(sizes_, dtype_),
        x_(call.outputs[0].data),
        scratch_(static_cast<char*>(call.scratch)) {}

  int64_t scratch_bytes() const {
    int64_t bytes = 0;
    for (const Matmul& matmul : {gram(), gram_square(), product()}) {
      bytes = std::max(bytes, matmul_scratch_bytes(matmul));
    }
    return places_.rest + bytes;
  }

  void begin(const View& direction) {
    const float norm = norm_of(direction);
    combine(x_, direction.data, nullptr, 1, 0, norm, sizes_.elements());
  }

  void step() {
    run_matmul(gram(), at(places_.rest));
    run_matmul(gram_square(), at(places_.rest));
    combine(at(places_.polynomial), at(places_.gram), at(places_.gram_square), NewtonSchulz::kB,
            NewtonSchulz::kC, 1, sizes_.gram_elements());
    run_matmul(product(), at(places_.rest));
    combine(x_, x_, at(places_.product), NewtonSchulz::kA, 1, 1, sizes_.elements());
  }

 private:
  char* at(int64_t place) const { return scratch_ == nullptr ? nullptr : scratch_ + place; }

  static float norm_of(const View& x) {
    std::array<double, exact_sum::kBins> bins{};
    const int64_t all = x.shape.num_elements();
#pragma omp parallel
    {
      std::array<double, exact_sum::kBins> mine{};
#pragma omp for schedule(static) nowait
      for (int64_t begin = 0; begin < all; begin += kFlatGranule) {
        const int64_t count = std::min(kFlatGranule, all - begin);
        exact_sum::add(mine.data(), HWY_DYNAMIC_DISPATCH(squares)(x, begin, count));
      }
#pragma omp critical(orthogonalize)
      exact_sum::add_all(bins.data(), mine.data());
    }
    return static_cast<float>(
        std::max(std::sqrt(exact_sum::total(bins.data())), NewtonSchulz::kLeastNorm));
  }

  void combine(void* to, const void* from, const void* other, float a, float b, float divisor,
               int64_t all) const {
#pragma omp parallel for schedule(static)
    for (int64_t begin = 0; begin < all; begin += kSegmentElements) {
      HWY_DYNAMIC_DISPATCH(combine)
      (dtype_, to, from, static_cast<const float*>(other), a, b, divisor, begin,
       std::min(kSegmentElements, all - begin));
    }
  }

  Matmul matmul(int64_t rows, int64_t cols, int64_t depth, const MatmulOperand& a,
                const MatmulOperand& b, void* out, DType out_dtype) const {
    Matmul result{dtype_, rows, cols, 1, {}, {out, out_dtype, cols}};
    result.terms[0] = {depth, a, b};
    return result;
  }

  // X X^T; of the transpose, X^T X.
  Matmul gram() const {
    const MatmulOperand x = {x_, sizes_.cols, sizes_.is_tall};
    return matmul(sizes_.small, sizes_.small, sizes_.large, x, x, at(places_.gram), dtype_);
  }
  Matmul gram_square() const {
    return matmul(sizes_.small, sizes_.small, sizes_.small, {at(places_.gram), sizes_.small, false},
                  {at(places_.gram), sizes_.small, true}, at(places_.gram_square), DType::kF32);
  }
  // (b A + c A A) X; of the transpose, X (b A + c A A).
  Matmul product() const {
    const MatmulOperand polynomial = {at(places_.polynomial), sizes_.small, sizes_.is_tall};
    const MatmulOperand x = {x_, sizes_.cols, !sizes_.is_tall};
    return sizes_.is_tall ? matmul(sizes_.rows, sizes_.cols, sizes_.small, x, polynomial,
                                   at(places_.product), DType::kF32)
                          : matmul(sizes_.rows, sizes_.cols, sizes_.small, polynomial, x,
                                   at(places_.product), DType::kF32);
  }

  const OrthogonalizeSizes sizes_;
  const DType dtype_;
  const OrthogonalizeScratch places_;
  void* const x_;
  char* const scratch_;  // null: only its size is asked for
};

std::shared_ptr<const void> prepare(const KernelCall& call) {
  if (!call.inputs[0].is_contiguous() || !call.outputs[0].is_contiguous()) {
    fail(ErrorCode::kInternal, "[orthogonalize] a matrix has gaps between its rows");
  }
  return nullptr;
}

int64_t scratch_bytes(const KernelCall& call) { return Iteration(call).scratch_bytes(); }

void run(const KernelCall& call) {
  const View& y = call.outputs[0];
  if (call.attrs.has("is_owner") && !call.attrs.flag("is_owner")) {
    std::memset(y.data, 0, y.num_bytes());
    return;
  }
  Iteration iteration(call);
  iteration.begin(call.inputs[0]);
  for (int i = 0; i < NewtonSchulz::kSteps; ++i) iteration.step();
}

}  // namespace

void add_orthogonalize_cpu_kernel(KernelTable& table) {
  table["orthogonalize"] = {.run = run, .scratch_bytes = scratch_bytes, .prepare = prepare};
}

}  // namespace skein
#endif  // HWY_ONCE
