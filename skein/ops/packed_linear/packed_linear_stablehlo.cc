// A packed weight here is its rows, one after the other and each filled up to whole words: a row
// takes as many words as the packed type has for one. So rows that are packed some at a time
// (weights/packed_weights.h) begin where they do in the whole.
#include "skein/ops/packed_linear/packed_linear.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

// The packed type rounds the number of rows up, but not at multiples of this.
constexpr int64_t kWholeRows = 256;

struct RowOfWords {
  int64_t elements_a_word;
  int64_t words;

  RowOfWords(Element element, int64_t in)
      : elements_a_word(bytes_of(Element::kI32) / bytes_of(element)),
        words(packed_weight_words(element == Element::kBF16 ? DType::kBF16 : DType::kF32,
                                  kWholeRows, in) /
              kWholeRows) {}

  // The shape of rows of so many words, as elements that a bitcast takes or gives.
  Dims elements_of(int64_t rows, int64_t words_a_row) const {
    return elements_a_word == 1 ? Dims{rows, words_a_row}
                                : Dims{rows, words_a_row, elements_a_word};
  }
};

std::vector<Tensor> pack(const RuleCall& call) {
  const Tensor& w = call.inputs[0];
  const int64_t out = w.dim(0), in = w.dim(1);
  const RowOfWords row(w.element(), in);
  const Tensor filled = pad_end(w, 1, row.words * row.elements_a_word - in);
  const Tensor words =
      bitcast(reshape(filled, row.elements_of(out, row.words)), Element::kI32, {out, row.words});
  const int64_t behind = call.outputs[0].num_elements() - out * row.words;
  return {pad_end(reshape(words, {out * row.words}), 0, behind)};
}

Tensor unpacked(const Tensor& packed, Element element, int64_t out, int64_t in) {
  const RowOfWords row(element, in);
  const int64_t used = (in + row.elements_a_word - 1) / row.elements_a_word;
  const Tensor rows = reshape(slice_dim(packed, 0, 0, out * row.words), {out, row.words});
  const Tensor elements = bitcast(slice_dim(rows, 1, 0, used), element, row.elements_of(out, used));
  return slice_dim(reshape(elements, {out, used * row.elements_a_word}), 1, 0, in);
}

std::vector<Tensor> forward(const RuleCall& call) {
  const Tensor& x = call.inputs[0];
  const int64_t out = call.constants().integer("out");
  Tensor y = matmul_nt(x, unpacked(call.inputs[1], x.element(), out, x.dim(1)));
  if (call.constants().flag("bias")) y = y + as_rows(to_f32(call.inputs[2]), y.dim(0));
  return {call.rounded(0, y)};
}

}  // namespace

void add_packed_linear_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["packed_linear"] = forward;
  rules["pack_weight"] = pack;
}

}  // namespace skein
