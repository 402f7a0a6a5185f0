// What check_memory expects of memory: for every value of the graphs the bytes that it is made of
// and who wrote them, as the graphs' nodes and layouts say.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "skein/passes/memory_map.h"

namespace skein {

// Bytes, and who wrote them; of a concatenation several.
using Parts = std::vector<MemoryMap::Content>;

// Those in `rect`.
Parts within(const Parts& parts, const ByteRect& rect);

class ExpectedContents {
 public:
  // A value that outlives programs, and whatever is written in its place.
  struct Persistent {
    std::string name;
    ByteRect rect;
    Parts latest;
    Parts before;  // as run `changed_in` found it
    int64_t changed_in = -1;
  };

  // Persistent values are those that `programs` names; graphs share what they name alike.
  ExpectedContents(const std::vector<const Graph*>& graphs, const ProgramSet& programs);

  std::vector<Persistent>& persistent() { return persistent_; }
  const Graph& graph(int index) const { return *graphs_.at(static_cast<size_t>(index)).graph; }
  // Of a node of the graph `index`.
  const Layout& layout(int index, int node) const {
    return graphs_.at(static_cast<size_t>(index)).layouts.at(static_cast<size_t>(node));
  }
  bool is_result(int index, ValueId id) const;

  void begin_run(const Program& program, int64_t slot);
  // Of the program that runs. What it makes itself, as it made it, nothing before; of what outlives
  // programs, whatever it was when the run began.
  const Parts& parts(ValueId id, const Operand& operand) const;
  void set_written(ValueId id, const Operand& operand, const ByteRect& rect,
                   MemoryMap::Writer writer);
  void set_view(ValueId id, const Operand& operand, Parts parts);

 private:
  // A value as it was written last, in one of its slots.
  struct Known {
    Parts parts;
    int64_t run = -1;
  };
  struct OfGraph {
    const Graph* graph = nullptr;
    std::vector<Layout> layouts;  // by node
    // By value:
    std::vector<int> persistent;  // which of these it is, or is written in place of; -1: none
    std::vector<bool> is_view;
    std::vector<std::vector<Known>> known;  // [slot]
    std::vector<int64_t> made_in;           // the newest run whose program makes it
  };

  void add_graph(const Graph& graph, const ProgramSet& programs);
  int find_persistent(const std::string& name, const ProgramSet& programs);
  size_t slot_of(const Operand& operand) const;

  std::vector<OfGraph> graphs_;
  std::vector<Persistent> persistent_;
  std::map<std::string, int, std::less<>> by_name_;
  OfGraph* running_ = nullptr;  // the graph of the program that runs
  int64_t slot_ = 0;
  int64_t run_ = 0;
};

}  // namespace skein
