// What check_memory expects to find in memory: for every value of the graphs, the bytes that it
// consists of and who wrote them, derived from the graphs' nodes and layouts.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "skein/passes/memory/memory_map.h"

namespace skein {

// Bytes and who wrote them; a concatenation has several parts.
using Parts = std::vector<MemoryMap::Content>;

// What of `parts` lies in `rect`.
Parts within(const Parts& parts, const ByteRect& rect);

class ExpectedContents {
 public:
  // A value that outlives programs, with whatever later ops write in its place.
  struct Persistent {
    std::string name;
    std::vector<ByteRect> rects;  // one, or one a slot
    Parts latest;
    Parts before;  // `latest` at the beginning of run `changed_in`
    int64_t changed_in = -1;
    int64_t read_in = -1;  // the latest run
  };

  // The values that `programs` names are persistent; a name is the same value in all graphs.
  ExpectedContents(const std::vector<const Graph*>& graphs, const ProgramSet& programs);

  std::vector<Persistent>& persistent() { return persistent_; }
  const Graph& graph(int index) const { return *graphs_.at(static_cast<size_t>(index)).graph; }
  // The layout of a node of the graph `index`.
  const Layout& layout(int index, int node) const {
    return graphs_.at(static_cast<size_t>(index)).layouts.at(static_cast<size_t>(node));
  }
  bool is_result(int index, ValueId id) const;

  // What a program does for the micro-batch ahead counts as a run of its own, behind that of what
  // it does for its own: whatever their order in the program, that is what they must come to.
  void begin_run(const Program& program);
  void begin_instruction(const Instruction& instruction, int64_t slot);
  // The parts of a value of the program that runs. A value that the program makes has what this run
  // made, and nothing before that; a persistent value has what it was when the run began.
  const Parts& parts(ValueId id, const Operand& operand) const;
  void note_read(ValueId id);
  // Of a pair, forward has read it already, which must see what backward is about to write.
  bool was_read_ahead(ValueId id) const;
  void set_written(ValueId id, const Operand& operand, const ByteRect& rect,
                   MemoryMap::Writer writer);
  void set_view(ValueId id, const Operand& operand, Parts parts);

 private:
  // A value as it was last written in one of its slots.
  struct Known {
    Parts parts;
    int64_t run = -1;
  };
  struct OfGraph {
    const Graph* graph = nullptr;
    std::vector<Layout> layouts;  // by node
    // By value:
    std::vector<int> persistent;  // the persistent value that it is or overwrites; -1: none
    std::vector<bool> is_view;
    std::vector<std::vector<Known>> known;  // [slot]
    std::vector<int64_t> made_in;           // the newest run whose program makes the value
  };

  void add_graph(const Graph& graph, const ProgramSet& programs);
  int find_persistent(const std::string& name, const ProgramSet& programs);
  size_t slot_of(const Operand& operand) const;

  std::vector<OfGraph> graphs_;
  std::vector<Persistent> persistent_;
  std::map<std::string, int, std::less<>> by_name_;
  OfGraph* running_ = nullptr;  // the graph of the program that runs
  int64_t slot_ = 0;
  int64_t first_run_ = 0;  // of the program that runs
  int64_t run_ = 0;
};

}  // namespace skein
