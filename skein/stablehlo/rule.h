// How an op is written in StableHLO: the one interface between the step program and backends that
// compile programs as a whole (runtime/pjrt). A rule is the op's exact definition over whole local
// tensors; it knows nothing of memory: an op that works in place returns the new value.
//
// Sharing   Calls with the same constants and types share a function of the text. An attr that only
//           tells one call from another, such as the number of a random stream, would part them: a
//           Rule lists it in `arguments`, and reads it with argument_word().
// Replicas  All ranks of a program run one text. Attrs that OpDef::localize sets may differ between
//           them: read those with rank_integer(), which becomes a look-up by the replica's number.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "skein/ir/attrs.h"
#include "skein/stablehlo/function.h"
#include "skein/tensor/mesh.h"

namespace skein::stablehlo {

// One use of an op. `attrs` has those of every replica, which are the ranks `ranks` of the mesh.
struct RuleCall {
  Function& to;
  const Mesh& mesh;
  const std::vector<int64_t>& ranks;
  std::vector<const Attrs*> attrs;
  std::vector<Tensor> inputs;  // local; an absent optional input is not present()
  std::vector<Type> outputs;   // what the rule must return

  std::map<std::string_view, Tensor> arguments = {};  // by the name of the attr: ui32[]

  const Attrs& constants() const { return *attrs.front(); }  // what localize does not set
  // The low 32 bits of an attr of Rule::arguments: ui32[].
  const Tensor& argument_word(std::string_view name) const;
  bool has_input(size_t index) const { return index < inputs.size() && inputs[index].present(); }
  int64_t num_replicas() const { return static_cast<int64_t>(attrs.size()); }

  // An attr of localize, or `otherwise` where it is absent: a scalar, constant if all replicas
  // have the same. Of a list, its element `index`.
  Tensor rank_integer(std::string_view name, int64_t otherwise,
                      Element element = Element::kI32) const;
  Tensor rank_integer_of(std::string_view name, size_t index,
                         Element element = Element::kI32) const;
  // Whether all replicas have the same value there; then it may decide what the text is.
  bool is_same(std::string_view name) const;
  // The replicas that a collective over this axis of the mesh joins, in the order of the axis.
  ReplicaGroups groups(std::string_view axis) const;
  // Where the replica is on that axis: i32[].
  Tensor coordinate(std::string_view axis) const;

  // The value as output `index`: converted to its element, to nearest.
  Tensor rounded(size_t index, const Tensor& value) const {
    return convert(value, outputs.at(index).element);
  }

 private:
  Tensor by_replica(const std::vector<int64_t>& values, Element element) const;
};

struct Rule {
  // Returns a value for each output. Appends to `call.to`.
  using Write = std::vector<Tensor> (*)(const RuleCall& call);

  Rule() = default;
  Rule(Write write, std::vector<std::string_view> arguments = {})
      : write(write), arguments(std::move(arguments)) {}

  Write write = nullptr;
  // Integer attrs that a call of the function passes to it; `constants` does not have them.
  std::vector<std::string_view> arguments;
};
using RuleTable = std::map<std::string_view, Rule>;

}  // namespace skein::stablehlo
