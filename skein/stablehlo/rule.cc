#include "skein/stablehlo/rule.h"

#include <algorithm>

#include "skein/base/error.h"

namespace skein::stablehlo {

const Tensor& RuleCall::argument_word(std::string_view name) const {
  const auto found = arguments.find(name);
  if (found == arguments.end()) {
    fail(ErrorCode::kInternal, "{}: '{}' is not an argument of the rule", to.name(), name);
  }
  return found->second;
}

Tensor RuleCall::by_replica(const std::vector<int64_t>& values, Element element) const {
  const bool is_constant =
      std::all_of(values.begin(), values.end(), [&](int64_t value) { return value == values[0]; });
  if (is_constant) return to.word(element, static_cast<uint64_t>(values[0]));
  const Tensor table = to.words(element, values, {num_replicas()});
  return reshape(dynamic_slice(table, {convert(to.replica_id(), Element::kI32)}, {1}), {});
}

Tensor RuleCall::rank_integer(std::string_view name, int64_t otherwise, Element element) const {
  std::vector<int64_t> values;
  for (const Attrs* one : attrs) values.push_back(one->has(name) ? one->integer(name) : otherwise);
  return by_replica(values, element);
}

Tensor RuleCall::rank_integer_of(std::string_view name, size_t index, Element element) const {
  std::vector<int64_t> values;
  for (const Attrs* one : attrs) values.push_back(one->integers(name).at(index));
  return by_replica(values, element);
}

bool RuleCall::is_same(std::string_view name) const {
  const auto value = [name](const Attrs& one) {
    return one.has(name) ? std::vector<int64_t>{1, one.integer(name)} : std::vector<int64_t>{0};
  };
  return std::all_of(attrs.begin(), attrs.end(),
                     [&](const Attrs* one) { return value(*one) == value(*attrs.front()); });
}

ReplicaGroups RuleCall::groups(std::string_view axis) const {
  const int index = mesh.find(axis);
  if (index < 0) fail(ErrorCode::kInternal, "{} has no axis '{}'", mesh.to_string(), axis);
  std::map<std::vector<int64_t>, std::vector<int64_t>> members;  // by the other coordinates
  for (int64_t replica = 0; replica < num_replicas(); ++replica) {
    std::vector<int64_t> others = mesh.coordinates(ranks[replica]);
    others[index] = 0;
    members[others].push_back(replica);
  }
  ReplicaGroups groups;
  for (auto& [others, group] : members) {
    std::sort(group.begin(), group.end(), [&](int64_t a, int64_t b) {
      return mesh.coordinates(ranks[a])[index] < mesh.coordinates(ranks[b])[index];
    });
    if (std::ssize(group) != mesh.axis(index).size) {
      fail(ErrorCode::kUnsupported,
           "a collective over '{}' joins {} ranks, and {} of them are devices of this process",
           axis, mesh.axis(index).size, group.size());
    }
    groups.push_back(std::move(group));
  }
  return groups;
}

Tensor RuleCall::coordinate(std::string_view axis) const {
  const int index = mesh.find(axis);
  std::vector<int64_t> values;
  for (const int64_t rank : ranks) values.push_back(mesh.coordinates(rank).at(index));
  return by_replica(values, Element::kI32);
}

}  // namespace skein::stablehlo
