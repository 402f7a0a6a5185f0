#include "skein/stablehlo/replica_attrs.h"

#include <algorithm>

#include "skein/base/numbers/hash.h"

namespace skein::stablehlo {
namespace {

std::string text_of_types(const std::vector<const TensorType*>& types, const Mesh& mesh) {
  std::string text;
  for (const TensorType* type : types) {
    text += type == nullptr ? "_ " : type->to_string(mesh) + " ";
  }
  return text;
}

}  // namespace

ReplicaAttrs::ReplicaAttrs(std::vector<Attrs> by_replica) : by_replica_(std::move(by_replica)) {
  key_ = by_replica_.front().to_string();
  const auto is_first = [&](const Attrs& one) { return one == by_replica_.front(); };
  if (std::all_of(by_replica_.begin(), by_replica_.end(), is_first)) return;
  Xxh3Stream hash;
  for (const Attrs& one : by_replica_) {
    const std::string text = one.to_string() + "\n";
    hash.update(std::as_bytes(std::span(text)));
  }
  key_ += hash.hex();
}

std::vector<const Attrs*> ReplicaAttrs::pointers() const {
  std::vector<const Attrs*> all;
  for (const Attrs& one : by_replica_) all.push_back(&one);
  return all;
}

LocalizedAttrs::LocalizedAttrs(const Graph& graph, std::vector<int64_t> ranks)
    : graph_(graph), ranks_(std::move(ranks)) {}

const ReplicaAttrs& LocalizedAttrs::of(const Instruction& instruction,
                                       std::span<const std::string_view> without) {
  const OpDef& op = *instruction.op;
  const OpCall call = graph_.call(graph_.nodes().at(static_cast<size_t>(instruction.node)));
  const Attrs attrs = instruction.attrs.without(without);
  std::string signature =
      fmt::format("{} {} {}-> {}", op.name, attrs.to_string(),
                  text_of_types(call.inputs, call.mesh), text_of_types(call.outputs, call.mesh));
  std::unique_ptr<ReplicaAttrs>& known = known_[std::move(signature)];
  if (known == nullptr) {
    std::vector<Attrs> by_replica(ranks_.size(), attrs);
    for (size_t i = 0; i < ranks_.size() && op.localize != nullptr; ++i) {
      op.localize(call, ranks_[i], by_replica[i]);
    }
    known = std::make_unique<ReplicaAttrs>(std::move(by_replica));
  }
  return *known;
}

}  // namespace skein::stablehlo
