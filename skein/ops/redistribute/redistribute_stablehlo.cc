// Sums are trees of explicit additions over the terms of all ranks (comm/tree_sum.h), because
// XLA's own collectives add in an order of their own. Data ranks are taken to have equal branches
// of that tree: other branches (comm/branches.h) are not known here.
#include <algorithm>

#include "skein/base/text/units.h"
#include "skein/ops/redistribute/redistribute.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

using Tensors = std::vector<Tensor>;

// Up to here, to have all terms everywhere is quicker than two collectives.
constexpr int64_t kSmallBytes = int64_t{64} << 10;

// Row by row, cut or filled up with zeros.
Tensor flat(const Tensor& x, int64_t elements) {
  const int64_t count = x.type().num_elements();
  const Tensor row = reshape(x, {count});
  return elements < count ? slice_dim(row, 0, 0, elements) : pad_end(row, 0, elements - count);
}
Tensor flat(const Tensor& x) { return flat(x, x.type().num_elements()); }

// Values travel as they are stored: XLA may otherwise keep bf16 in fp32 on the way
// (xla_allow_excess_precision), add what was never rounded, and send twice the bytes.
Tensor bits_of(const Tensor& x) {
  return x.element() == Element::kBF16 ? bitcast(x, Element::kU16) : x;
}
Tensor term_of(const Tensor& bits) {
  if (bits.element() != Element::kU16) return bits;
  return bitcast(convert(bits, Element::kU32) << 16, Element::kF32);
}

// (a0 + a1) + (a2 + a3) and so on of the rows of [ranks, elements]; of bf16 in fp32.
Tensor tree_sum(const Tensor& bits) {
  Tensors terms;
  for (int64_t rank = 0; rank < bits.dim(0); ++rank) {
    terms.push_back(term_of(flat(slice_dim(bits, 0, rank, rank + 1))));
  }
  while (terms.size() > 1) {
    Tensors sums;
    for (size_t i = 0; i < terms.size(); i += 2) {
      sums.push_back(i + 1 < terms.size() ? terms[i] + terms[i + 1] : terms[i]);
    }
    terms = std::move(sums);
  }
  return terms[0];
}

// The dim of which a share has one of `size` equal parts; -1: it is a range of the elements.
int split_dim(const Dims& whole, const Dims& share, int64_t size) {
  if (whole.size() != share.size()) return -1;
  int found = -1;
  for (int dim = 0; dim < std::ssize(whole); ++dim) {
    if (whole[dim] == share[dim]) continue;
    if (found >= 0 || whole[dim] != size * share[dim]) return -1;
    found = dim;
  }
  return found;
}

// A redistribution over one axis.
class Axis {
 public:
  explicit Axis(const RuleCall& call)
      : call_(call),
        kind_(kind_of(call)),
        size_(kind_ == "copy" ? 1 : call.constants().integer("size")) {
    if (kind_ != "copy" && kind_ != "slice") groups_ = call.groups(call.constants().text("axis"));
  }

  // The first `count` outputs.
  Tensors move(size_t count) const {
    if (kind_ == "all_reduce") return all_reduce(count);
    Tensors outputs;
    for (size_t i = 0; i < count; ++i) outputs.push_back(move_one(call_.inputs[i], i));
    return outputs;
  }

 private:
  static std::string kind_of(const RuleCall& call) {
    const Attrs& attrs = call.constants();
    return attrs.has("kind") && attrs.integer("size") > 1 ? attrs.text("kind") : "copy";
  }

  Tensor move_one(const Tensor& x, size_t i) const {
    const Type& y = call_.outputs[i];
    if (kind_ == "slice") return slice(x, y);
    if (kind_ == "all_gather") return all_gather(x, y);
    if (kind_ == "reduce_scatter") {
      return reshape(call_.rounded(i, sum_of_share(x, y.num_elements())), y.dims);
    }
    return reshape(flat(x, y.num_elements()), y.dims);
  }

  Tensor slice(const Tensor& x, const Type& y) const {
    const Tensor index = call_.rank_integer("index", 0), zero = call_.to.word(Element::kI32, 0);
    const int dim = split_dim(x.dims(), y.dims, size_);
    if (dim >= 0) {
      Tensors at(y.dims.size(), zero);
      at[dim] = index * static_cast<double>(y.dims[dim]);
      return dynamic_slice(x, at, y.dims);
    }
    const int64_t share = y.num_elements();
    const Tensor shares = reshape(flat(x, size_ * share), {size_, share});
    return reshape(dynamic_slice(shares, {index, zero}, {1, share}), y.dims);
  }

  // Gathers along a dim of its own, in front: not every compiler can along others.
  Tensor all_gather(const Tensor& x, const Type& y) const {
    int64_t outer = 1;
    for (int dim = 0; dim < split_dim(y.dims, x.dims(), size_); ++dim) outer *= y.dims[dim];
    const Tensor share = reshape(bits_of(x), {1, outer, x.type().num_elements() / outer});
    Tensor shares = call_.to.all_gather(share, 0, groups_);
    if (outer > 1) shares = transpose(shares, {1, 0, 2});
    const Tensor whole = reshape(flat(shares, y.num_elements()), y.dims);
    return whole.element() == x.element() ? whole : bitcast(whole, x.element());
  }

  // Share `index` of the sum, not rounded.
  Tensor sum_of_share(const Tensor& x, int64_t share) const {
    const Tensor shares = reshape(flat(bits_of(x), size_ * share), {size_, share});
    return tree_sum(call_.to.all_to_all(shares, 0, groups_));
  }

  Tensor sum_by_shares(const Tensor& x, size_t i) const {
    const Tensor share =
        call_.rounded(i, sum_of_share(x, ceil_div(x.type().num_elements(), size_)));
    return all_gather(share, call_.outputs[i]);
  }

  // Small values travel together.
  Tensors all_reduce(size_t count) const {
    Tensors outputs(count), small;
    for (size_t i = 0; i < count; ++i) {
      const Tensor& x = call_.inputs[i];
      if (x.type().num_bytes() > kSmallBytes) {
        outputs[i] = sum_by_shares(x, i);
      } else {
        small.push_back(flat(bits_of(x)));
      }
    }
    if (small.empty()) return outputs;
    const Tensor together = concatenate(small, 0);
    const Tensor terms = call_.to.all_gather(reshape(together, {1, together.dim(0)}), 0, groups_);
    const Tensor sums = tree_sum(terms);
    int64_t begin = 0;
    for (size_t i = 0; i < count; ++i) {
      if (outputs[i].present()) continue;
      const int64_t end = begin + call_.outputs[i].num_elements();
      outputs[i] = call_.rounded(i, reshape(slice_dim(sums, 0, begin, end), call_.outputs[i].dims));
      begin = end;
    }
    return outputs;
  }

  const RuleCall& call_;
  std::string kind_;
  int64_t size_;
  ReplicaGroups groups_;
};

Tensors redistribute(const RuleCall& call) { return Axis(call).move(call.outputs.size()); }

// The compiler orders what overlaps: the results are there at once, and nothing is staged.
Tensors start(const RuleCall& call) {
  Tensors outputs = Axis(call).move(call.outputs.size() - 1);
  const Type& staging = call.outputs.back();
  outputs.push_back(call.to.constant(staging.element, 0, staging.dims));
  return outputs;
}

Tensors wait(const RuleCall& call) {
  return {call.inputs.begin(), call.inputs.begin() + std::ssize(call.outputs)};
}

}  // namespace

void add_redistribute_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["redistribute"] = redistribute;
  rules["redistribute_start"] = start;
  rules["redistribute_wait"] = wait;
}

}  // namespace skein
