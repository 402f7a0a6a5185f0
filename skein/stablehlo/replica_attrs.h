// The attrs of an instruction as each of the ranks that run one text has them.
//
// Cost  calls with the same op, attrs and types share the answer: what thousands of ranks have is
//       computed once for each shape of a parameter, not for each instruction
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/ir/graph.h"
#include "skein/ir/program.h"

namespace skein::stablehlo {

class ReplicaAttrs {
 public:
  explicit ReplicaAttrs(std::vector<Attrs> by_replica);

  std::vector<const Attrs*> pointers() const;
  // Equal for equal attrs alone; short, however many replicas there are.
  const std::string& key() const { return key_; }

 private:
  std::vector<Attrs> by_replica_;
  std::string key_;
};

// What OpDef::localize says of the instructions that were planned from one graph.
class LocalizedAttrs {
 public:
  // `graph` must outlive it. `ranks`: by replica.
  LocalizedAttrs(const Graph& graph, std::vector<int64_t> ranks);

  // But for those that are named so.
  const ReplicaAttrs& of(const Instruction& instruction, std::span<const std::string_view> without);

 private:
  const Graph& graph_;
  std::vector<int64_t> ranks_;
  std::map<std::string, std::unique_ptr<ReplicaAttrs>> known_;  // by what localize looks at
};

}  // namespace skein::stablehlo
