// A rank's part of a parameter in StableHLO: its random words, its padding, and what it is of a
// value of which the rank holds more. Where it lies, LocalElements (local_elements.h) says.
//
// Formula  the words of base/numbers/philox.h, bit for bit: word e % 4 of block e / 4 for element e
//          of the whole parameter
// Cost     where all runs are whole blocks, a block is written once for its four elements;
//          otherwise once for each of them. No array is larger than a word for each element. A
//          compiler that fuses the choice of a word with its block does the latter in any case
#pragma once

#include <vector>

#include "skein/base/numbers/philox.h"
#include "skein/ops/local_elements.h"
#include "skein/stablehlo/rule.h"

namespace skein {

class LocalPart {
 public:
  // `dims`: of the part, with the padding behind it. `call` must outlive it.
  LocalPart(const stablehlo::RuleCall& call, stablehlo::Dims dims);

  // A word for each element, ui32: of the attr `seed`, the argument `stream`, and `step`, i32[1].
  stablehlo::Tensor words(RandomPurpose purpose, const stablehlo::Tensor& step) const;
  // The value, and zero in the padding.
  stablehlo::Tensor without_padding(const stablehlo::Tensor& value) const;
  // The elements of `held` that the part has, from `weight_begin` on.
  stablehlo::Tensor cut(const stablehlo::Tensor& held) const;

 private:
  bool is_one_run() const;
  bool has_whole_blocks() const;
  stablehlo::Element index_element() const;
  stablehlo::Tensor indices(int64_t count, int shift) const;

  const stablehlo::RuleCall& call_;
  stablehlo::Dims dims_;
  int64_t num_elements_;
  std::vector<LocalElements> replicas_;
};

// One of the two bf16 around an f32, the nearer one with the higher probability: the low 16 bits of
// `words` are added below the bf16. NaN stays NaN.
stablehlo::Tensor round_to_bf16(const stablehlo::Tensor& value, const stablehlo::Tensor& words);

}  // namespace skein
