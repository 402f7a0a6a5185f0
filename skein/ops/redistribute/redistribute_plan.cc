#include "skein/ops/redistribute/redistribute_plan.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

enum class Kind : uint8_t { kCopy, kSlice, kAllGather, kReduceScatter, kAllReduce };

constexpr int64_t kAlignment = 64;

Kind kind_of(const KernelCall& call) {
  if (!call.attrs.has("kind") || call.attrs.integer("size") == 1) return Kind::kCopy;
  const std::string& name = call.attrs.text("kind");
  if (name == "slice") return Kind::kSlice;
  if (name == "all_gather") return Kind::kAllGather;
  return name == "reduce_scatter" ? Kind::kReduceScatter : Kind::kAllReduce;
}

int group_size(const KernelCall& call) { return static_cast<int>(call.attrs.integer("size")); }

CollectiveKind collective_kind(Kind kind) {
  switch (kind) {
    case Kind::kAllGather:
      return CollectiveKind::kAllGather;
    case Kind::kReduceScatter:
      return CollectiveKind::kReduceScatter;
    case Kind::kAllReduce:
      return CollectiveKind::kAllReduce;
    default:
      return CollectiveKind::kBarrier;
  }
}

// Value `i` and this rank's share of it, according to the attrs.
struct RankShare {
  int64_t elements, share;  // elements of the whole; of a full share
  int64_t begin, count;     // where this rank's share begins, and how long it is

  RankShare(const KernelCall& call, size_t i)
      : elements(call.attrs.integers("elements")[i]),
        share(call.attrs.integers("shares")[i]),
        begin(std::min(elements, call.attrs.integer("index") * share)),
        count(std::min(share, elements - begin)) {}

  Padding padding(void* data, DType dtype) const {
    const int64_t size = size_of(dtype);
    return {static_cast<char*>(data) + count * size, (share - count) * size};
  }
};

// Allocates scratch; the collective's own scratch comes last.
class Builder {
 public:
  explicit Builder(const KernelCall& call) : call_(call), kind_(kind_of(call)) {}

  RedistributePlan build() {
    plan_.collective.kind = collective_kind(kind_);
    if (!plan_.communicates()) return std::move(plan_);
    plan_.collective.dtype = call_.outputs[0].dtype;
    plan_.collective.label = call_.attrs.text("axis");
    for (size_t i = 0; i < call_.attrs.integers("elements").size(); ++i) add_part(i);
    plan_.collective.scratch = static_cast<char*>(call_.scratch) + plan_.scratch_bytes;
    plan_.scratch_bytes += collective_scratch_bytes(plan_.collective, group_size(call_));
    return std::move(plan_);
  }

 private:
  char* take(int64_t bytes) {
    char* at = static_cast<char*>(call_.scratch) + plan_.scratch_bytes;
    plan_.scratch_bytes += round_up(bytes, kAlignment);
    return at;
  }

  void add_part(size_t i) {
    const View &x = call_.inputs[i], &y = call_.outputs[i];
    const RankShare mine(call_, i);
    CollectivePart part;
    part.elements = mine.elements;
    part.share = kind_ == Kind::kAllReduce ? 0 : mine.share;
    part.input = x.data;
    part.output = y.data;
    if (gathers_columns(i)) {
      part.output = take(y.num_bytes());
      place_columns(y, x, static_cast<const char*>(part.output));
    } else if (!y.is_contiguous()) {
      char* dense = take(y.num_bytes());
      plan_.after.push_back(RowCopy::unpack(y, dense));
      part.output = dense;
    }
    if (kind_ == Kind::kAllGather) {
      // The share goes to its place in the whole, since the collective is in place.
      const int64_t size = size_of(y.dtype);
      char* place = static_cast<char*>(part.output) + mine.begin * size;
      // A Flat share may end in padding.
      plan_.before.push_back(x.is_contiguous()
                                 ? RowCopy::dense(place, x.as<const char>(), mine.count * size)
                                 : RowCopy::pack(place, x));
      part.input = place;
    } else if (!x.is_contiguous()) {
      char* dense = take(x.num_bytes());
      plan_.before.push_back(RowCopy::pack(dense, x));
      part.input = dense;
    }
    if (kind_ == Kind::kReduceScatter) add_padding(mine.padding(part.output, y.dtype));
    plan_.collective.parts.push_back(part);
  }

  // Whether the shares are columns of a matrix, which follow each other in the collective.
  bool gathers_columns(size_t i) const {
    const View &x = call_.inputs[i], &y = call_.outputs[i];
    return kind_ == Kind::kAllGather && x.shape.rank() == 2 && y.shape.rank() == 2 &&
           x.rows() == y.rows() && x.cols() < y.cols();
  }

  void place_columns(const View& y, const View& x, const char* shares) {
    const int64_t row_bytes = x.cols() * size_of(x.dtype);
    for (int64_t share = 0; share < group_size(call_); ++share) {
      plan_.after.push_back({y.as<char>() + share * row_bytes, y.row_stride * size_of(y.dtype),
                             shares + share * x.rows() * row_bytes, row_bytes, x.rows(),
                             row_bytes});
    }
  }

  void add_padding(const Padding& padding) {
    if (padding.bytes > 0) plan_.padding.push_back(padding);
  }

  const KernelCall& call_;
  Kind kind_;
  RedistributePlan plan_;
};

}  // namespace

RedistributePlan plan_redistribute(const KernelCall& call) { return Builder(call).build(); }

RedistributePlan prepare_redistribute(const KernelCall& call) {
  RedistributePlan plan = plan_redistribute(call);
  if (kind_of(call) == Kind::kCopy && !(call.inputs[0].shape == call.outputs[0].shape)) {
    fail(ErrorCode::kInternal, "[redistribute] {} to {} without the rank's place",
         call.inputs[0].shape.to_string(), call.outputs[0].shape.to_string());
  }
  if (plan.communicates() && call.communicator == nullptr) {
    fail(ErrorCode::kInternal, "[redistribute] over '{}' has no communicator",
         call.attrs.text("axis"));
  }
  if (plan.communicates()) call.communicator->prepare(plan.collective);
  return plan;
}

RedistributePlan prepare_redistribute_start(const KernelCall& call) {
  RedistributePlan plan = plan_redistribute(call);
  const View& staging = call.outputs.back();
  const int64_t bytes = collective_scratch_bytes(plan.collective, group_size(call));
  bool packed = plan.after.empty();
  for (const View& x : call.inputs) {  // a gather packs what it reads into its output
    packed = packed && (x.is_contiguous() || kind_of(call) == Kind::kAllGather);
  }
  if (!packed || bytes > staging.num_bytes() || call.communicator == nullptr) {
    fail(ErrorCode::kInternal, "[redistribute_start] {} staging bytes of {}, or rows with gaps",
         staging.num_bytes(), bytes);
  }
  plan.collective.scratch = staging.data;
  call.communicator->prepare(plan.collective);
  return plan;
}

RedistributePlan prepare_redistribute_wait(const KernelCall& call) {
  RedistributePlan plan;
  for (size_t i = 0; i < call.outputs.size() && call.attrs.has("copies"); ++i) {
    plan.after.push_back(RowCopy::unpack(call.outputs[i], call.inputs[i].as<const char>()));
  }
  for (size_t i = 0; i < call.outputs.size() && kind_of(call) == Kind::kReduceScatter; ++i) {
    const View& y = call.outputs[i];
    const Padding padding = RankShare(call, i).padding(y.data, y.dtype);
    if (padding.bytes > 0) plan.padding.push_back(padding);
  }
  return plan;
}

// A slice: columns of a matrix, a range of elements, or rows.
LocalMove local_move(const KernelCall& call, size_t i) {
  const View &x = call.inputs[i], &y = call.outputs[i];
  const int64_t size = size_of(y.dtype), x_stride = x.row_stride * size;
  RowCopy copy = RowCopy::unpack(y, x.as<const char>());
  copy.from_stride = x_stride;
  if (kind_of(call) == Kind::kCopy) return {copy, {}};
  const int64_t index = call.attrs.integer("index");
  if (x.shape.rank() == y.shape.rank() && x.rows() == y.rows() && x.shape.rank() > 1) {
    copy.from += index * y.cols() * size;
    return {copy, {}};
  }
  if (x.is_contiguous() && y.is_contiguous()) {
    const RankShare mine(call, i);
    return {RowCopy::dense(copy.to, copy.from + mine.begin * size, mine.count * size),
            mine.padding(y.data, y.dtype)};
  }
  copy.from += index * y.rows() * x_stride;
  return {copy, {}};
}

Collective collective_of(const KernelCall& call) { return plan_redistribute(call).collective; }

}  // namespace skein
