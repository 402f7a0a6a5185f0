#include <algorithm>
#include <cstring>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/units.h"
#include "skein/comm/communicator.h"
#include "skein/ir/kernel.h"
#include "skein/ops/redistribute/redistribute.h"

namespace skein {
namespace {

enum class Kind : uint8_t { kCopy, kSlice, kAllGather, kReduceScatter, kAllReduce };

// A view, and its first `elements` dense in another place.
struct Repacked {
  View view;
  char* dense;
  int64_t elements;
};

struct Plan {
  Kind kind = Kind::kCopy;
  int64_t index = 0;
  int64_t size = 1;
  Collective collective;
  std::vector<Repacked> pack;    // before
  std::vector<Repacked> unpack;  // after
};

Kind kind_of(const KernelCall& call) {
  if (!call.attrs.has("kind") || call.attrs.integer("size") == 1) return Kind::kCopy;
  const std::string& name = call.attrs.text("kind");
  if (name == "slice") return Kind::kSlice;
  if (name == "all_gather") return Kind::kAllGather;
  return name == "reduce_scatter" ? Kind::kReduceScatter : Kind::kAllReduce;
}

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

constexpr int64_t kAlignment = 64;

// Gives out scratch behind what the collective itself needs.
class Builder {
 public:
  explicit Builder(const KernelCall& call) : call_(call) {
    plan_.kind = kind_of(call);
    if (plan_.kind == Kind::kCopy) return;
    plan_.index = call.attrs.integer("index");
    plan_.size = call.attrs.integer("size");
    plan_.collective.kind = collective_kind(plan_.kind);
    plan_.collective.dtype = call.outputs[0].dtype;
    plan_.collective.label = call.attrs.text("axis");
    for (size_t i = 0; i < num_values(); ++i) add_part(i);
    if (plan_.kind != Kind::kSlice) {
      plan_.collective.scratch = static_cast<char*>(call.scratch) + bytes_;
      bytes_ += collective_scratch_bytes(plan_.collective, static_cast<int>(plan_.size));
    }
  }

  const Plan& plan() const { return plan_; }
  int64_t scratch_bytes() const { return bytes_; }

  size_t num_values() const { return call_.attrs.integers("elements").size(); }

 private:
  char* take(int64_t bytes) {
    char* at = static_cast<char*>(call_.scratch) + bytes_;
    bytes_ += round_up(bytes, kAlignment);
    return at;
  }

  void add_part(size_t i) {
    const View &x = call_.inputs[i], &y = call_.outputs[i];
    CollectivePart part;
    part.elements = call_.attrs.integers("elements")[i];
    part.share = plan_.kind == Kind::kAllReduce ? 0 : call_.attrs.integers("shares")[i];
    part.output = y.data;
    if (plan_.kind == Kind::kSlice) {
      part.input = x.data;
    } else {
      if (!y.is_contiguous()) {
        part.output = take(y.num_bytes());
        plan_.unpack.push_back({y, static_cast<char*>(part.output), part.elements});
      }
      part.input = x.data;
      if (plan_.kind == Kind::kAllGather) {
        // The share goes to its place in the whole; the collective is in place.
        char* place = static_cast<char*>(part.output) + begin(part) * size_of(y.dtype);
        plan_.pack.push_back({x, place, std::min(part.share, part.elements - begin(part))});
        part.input = place;
      } else if (!x.is_contiguous()) {
        char* dense = take(x.num_bytes());
        plan_.pack.push_back({x, dense, part.elements});
        part.input = dense;
      }
    }
    plan_.collective.parts.push_back(part);
  }

  int64_t begin(const CollectivePart& part) const {
    return std::min(part.elements, plan_.index * part.share);
  }

  const KernelCall& call_;
  Plan plan_;
  int64_t bytes_ = 0;
};

void copy_rows(char* to, int64_t to_stride_bytes, const char* from, int64_t from_stride_bytes,
               int64_t rows, int64_t row_bytes) {
  if (to == from) return;
  if (to_stride_bytes == row_bytes && from_stride_bytes == row_bytes) {
    constexpr int64_t kPiece = int64_t{1} << 18;
    const int64_t bytes = rows * row_bytes;
#pragma omp parallel for schedule(static)
    for (int64_t at = 0; at < bytes; at += kPiece) {
      std::memcpy(to + at, from + at, static_cast<size_t>(std::min(kPiece, bytes - at)));
    }
    return;
  }
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < rows; ++row) {
    std::memcpy(to + row * to_stride_bytes, from + row * from_stride_bytes,
                static_cast<size_t>(row_bytes));
  }
}

void pack(const Repacked& what) {
  const View& view = what.view;
  const int64_t size = size_of(view.dtype), row_bytes = view.cols() * size;
  if (view.is_contiguous()) {  // a Flat share may end in padding
    const int64_t bytes = what.elements * size;
    copy_rows(what.dense, bytes, view.as<const char>(), bytes, 1, bytes);
  } else {
    copy_rows(what.dense, row_bytes, view.as<const char>(), view.row_stride * size, view.rows(),
              row_bytes);
  }
}

void unpack(const Repacked& what) {
  const View& view = what.view;
  const int64_t size = size_of(view.dtype), row_bytes = view.cols() * size;
  copy_rows(view.as<char>(), view.row_stride * size, what.dense, row_bytes, view.rows(), row_bytes);
}

int64_t scratch_bytes(const KernelCall& call) { return Builder(call).scratch_bytes(); }

std::shared_ptr<const void> prepare(const KernelCall& call) {
  auto plan = std::make_shared<Plan>(Builder(call).plan());
  if (plan->kind == Kind::kCopy && !(call.inputs[0].shape == call.outputs[0].shape)) {
    fail(ErrorCode::kInternal, "[redistribute] {} to {} without the rank's place",
         call.inputs[0].shape.to_string(), call.outputs[0].shape.to_string());
  }
  if (plan->collective.kind != CollectiveKind::kBarrier && call.communicator == nullptr) {
    fail(ErrorCode::kInternal, "[redistribute] over '{}' has no communicator",
         call.attrs.text("axis"));
  }
  return plan;
}

// Rows of a matrix, columns of one, or a range of elements.
void run_slice(const KernelCall& call, const Plan& plan, size_t i) {
  const View &x = call.inputs[i], &y = call.outputs[i];
  const int64_t size = size_of(y.dtype), x_stride = x.row_stride * size;
  const CollectivePart& part = plan.collective.parts[i];
  if (x.shape.rank() == y.shape.rank() && x.rows() == y.rows() && x.shape.rank() > 1) {
    copy_rows(y.as<char>(), y.row_stride * size, x.as<const char>() + plan.index * y.cols() * size,
              x_stride, y.rows(), y.cols() * size);
  } else if (x.is_contiguous() && y.is_contiguous()) {
    const int64_t begin = std::min(part.elements, plan.index * part.share);
    const int64_t count = std::min(part.share, part.elements - begin);
    copy_rows(y.as<char>(), count * size, x.as<const char>() + begin * size, count * size, 1,
              count * size);
    std::memset(y.as<char>() + count * size, 0, static_cast<size_t>((part.share - count) * size));
  } else {
    copy_rows(y.as<char>(), y.row_stride * size,
              x.as<const char>() + plan.index * y.rows() * x_stride, x_stride, y.rows(),
              y.cols() * size);
  }
}

void clear_padding(const KernelCall& call, const Plan& plan) {
  const int64_t size = size_of(call.outputs[0].dtype);
  for (const CollectivePart& part : plan.collective.parts) {
    const int64_t begin = std::min(part.elements, plan.index * part.share);
    const int64_t count = std::min(part.share, part.elements - begin);
    std::memset(static_cast<char*>(part.output) + count * size, 0,
                static_cast<size_t>((part.share - count) * size));
  }
}

void run_collective(const KernelCall& call, const Plan& plan) {
  for (const Repacked& what : plan.pack) pack(what);
  call.communicator->run(plan.collective);
  for (const Repacked& what : plan.unpack) unpack(what);
  if (plan.kind == Kind::kReduceScatter) clear_padding(call, plan);
}

void run(const KernelCall& call) {
  const Plan& plan = *static_cast<const Plan*>(call.state.get());
  if (plan.kind != Kind::kCopy && plan.kind != Kind::kSlice) return run_collective(call, plan);
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    if (plan.kind == Kind::kSlice) {
      run_slice(call, plan, i);
    } else {
      const View &x = call.inputs[i], &y = call.outputs[i];
      const int64_t size = size_of(y.dtype);
      copy_rows(y.as<char>(), y.row_stride * size, x.as<const char>(), x.row_stride * size,
                y.rows(), y.cols() * size);
    }
  }
}

// The staging, the last output, is the collective's scratch.
std::shared_ptr<const void> prepare_start(const KernelCall& call) {
  auto plan = std::make_shared<Plan>(Builder(call).plan());
  const View& staging = call.outputs.back();
  const int64_t bytes = collective_scratch_bytes(plan->collective, static_cast<int>(plan->size));
  bool packed = plan->unpack.empty();
  for (const View& x : call.inputs) packed = packed && x.is_contiguous();
  if (!packed || bytes > staging.num_bytes() || call.communicator == nullptr) {
    fail(ErrorCode::kInternal, "[redistribute_start] {} staging bytes of {}, or rows with gaps",
         staging.num_bytes(), bytes);
  }
  plan->collective.scratch = staging.data;
  return plan;
}

void run_start(const KernelCall& call) {
  const Plan& plan = *static_cast<const Plan*>(call.state.get());
  for (const Repacked& what : plan.pack) pack(what);
  *call.ticket = call.communicator->start(plan.collective);
}

std::shared_ptr<const void> prepare_wait(const KernelCall& call) {
  auto plan = std::make_shared<Plan>();
  plan->kind = kind_of(call);
  plan->index = call.attrs.integer("index");
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    plan->collective.parts.push_back({.output = call.outputs[i].data,
                                      .elements = call.attrs.integers("elements")[i],
                                      .share = call.attrs.integers("shares")[i]});
  }
  return plan;
}

void run_wait(const KernelCall& call) {
  const Plan& plan = *static_cast<const Plan*>(call.state.get());
  call.communicator->wait(std::exchange(*call.ticket, -1));
  if (plan.kind == Kind::kReduceScatter) clear_padding(call, plan);
}

}  // namespace

Collective collective_of(const KernelCall& call) { return Builder(call).plan().collective; }

void add_redistribute_cpu_kernels(KernelTable& table) {
  table["redistribute"] = {.run = run, .scratch_bytes = scratch_bytes, .prepare = prepare};
  table["redistribute_start"] = {.run = run_start, .prepare = prepare_start};
  table["redistribute_wait"] = {.run = run_wait, .prepare = prepare_wait};
}

}  // namespace skein
