// exact_sum.h in StableHLO: the same bins, of a vector of terms at once.
#pragma once

#include <limits>
#include <vector>

#include "skein/base/numbers/exact_sum.h"
#include "skein/stablehlo/function.h"

namespace skein::exact_sum {

// `bins` f64[kBins] and the terms, f64[n].
//
// Method  bin by bin from the highest, the nearest multiple of the bin's unit moves from each term
//         to the bin, ties to even. That is (term + anchor) - anchor of exact_sum.h, in a form that
//         compilers do not simplify: it scales by powers of two, and rounds to whole numbers
// Narrow  the first bin is the sum in f32, and the others are zero: bins need the range of f64
inline stablehlo::Tensor add(const stablehlo::Tensor& bins, const stablehlo::Tensor& terms) {
  using stablehlo::Compare;
  using stablehlo::Element;
  using stablehlo::Function;
  using stablehlo::Tensor;
  Function& to = bins.function();
  if (to.is_narrow()) {
    const Tensor total = slice_dim(bins, 0, 0, 1) + reshape(sum(terms, {0}), {1});
    return stablehlo::concatenate({total, slice_dim(bins, 0, 1, kBins)}, 0);
  }
  const auto number = [&to](double value) { return to.constant(Element::kF64, value); };
  const Tensor in_range =
      compare(abs(terms), Compare::kLess, power_of_two(kLeastExponent + kBins * kBinBits));
  const Tensor whole = select(in_range, terms, number(0));

  // Carries the bins, what is left of the terms, the terms' magnitudes, which say in which bin a
  // term begins, and the bin's unit.
  const auto take_multiples = [&](const Tensor& turn, const std::vector<Tensor>& carried) {
    const Tensor &sums = carried[0], &rest = carried[1], &size = carried[2], &unit = carried[3];
    const Tensor bin = to.constant(Element::kI32, kBins - 1) - turn;
    const Tensor least = select(compare(bin, Compare::kEqual, 0), number(0), unit);
    const Tensor scaled = rest * (1.0 / unit);
    const Tensor multiple =
        to.append("round_nearest_even", {scaled}, "", scaled.type(), /*one_type=*/true) * unit;
    const Tensor part = select(compare(size, Compare::kGreaterEqual, least), multiple, number(0));
    const Tensor in_bin = dynamic_slice(sums, {bin}, {1}) + sum(part, {0});
    return std::vector<Tensor>{dynamic_update(sums, in_bin, {bin}), rest - part, size,
                               unit * power_of_two(-kBinBits)};
  };
  const double highest_unit = power_of_two(kLeastExponent + (kBins - 1) * kBinBits);
  const Tensor added =
      to.repeat(kBins, {bins, whole, abs(whole), number(highest_unit)}, take_multiples)[0];

  const Tensor refused =
      select(in_range, number(0), number(std::numeric_limits<double>::quiet_NaN()));
  const Tensor is_highest = compare(to.iota(Element::kI32, {kBins}, 0), Compare::kEqual, kBins - 1);
  return added + select(is_highest, sum(refused, {0}), number(0));
}

// The total of f64[kBins], f64[1].
inline stablehlo::Tensor total(const stablehlo::Tensor& bins) {
  stablehlo::Tensor all = slice_dim(bins, 0, 0, 1);
  for (int bin = 1; bin < kBins; ++bin) all = all + slice_dim(bins, 0, bin, bin + 1);
  const stablehlo::Tensor nan =
      bins.function().constant(stablehlo::Element::kF64, std::numeric_limits<double>::quiet_NaN());
  return select(is_finite(all), all, nan);
}

}  // namespace skein::exact_sum
