#include "skein/passes/memory/expected_contents.h"

#include <algorithm>

namespace skein {

Parts within(const Parts& parts, const ByteRect& rect) {
  Parts result;
  for (const MemoryMap::Content& part : parts) {
    if (const auto both = common(part.rect, rect)) result.push_back({*both, part.writer});
  }
  return result;
}

ExpectedContents::ExpectedContents(const std::vector<const Graph*>& graphs,
                                   const ProgramSet& programs) {
  for (const Graph* graph : graphs) add_graph(*graph, programs);
}

void ExpectedContents::add_graph(const Graph& graph, const ProgramSet& programs) {
  const size_t num_values = graph.values().size();
  OfGraph& added = graphs_.emplace_back();
  added.graph = &graph;
  added.persistent.resize(num_values, -1);
  added.is_view.resize(num_values);
  added.known.resize(num_values);
  added.made_in.resize(num_values, -1);
  for (size_t id = 0; id < num_values; ++id) {
    const Value& value = graph.values()[id];
    if (value.producer < 0) added.persistent[id] = find_persistent(value.name, programs);
  }
  for (const Node& node : graph.nodes()) {
    added.layouts.emplace_back();
    if (node.op->layout == nullptr) continue;
    added.layouts.back() = node.op->layout(graph.call(node));
    for (const Alias& alias : added.layouts.back().aliases) {
      const ValueId input = node.inputs.at(alias.input), output = node.outputs.at(alias.output);
      if (input == kNoValue) continue;
      added.persistent[output] = added.persistent[input];
      added.is_view[output] = !alias.in_place;
    }
  }
}

// Returns -1 if no program names it.
int ExpectedContents::find_persistent(const std::string& name, const ProgramSet& programs) {
  const auto named = programs.named.find(name);
  if (named == programs.named.end()) return -1;
  const auto [entry, fresh] = by_name_.emplace(name, static_cast<int>(persistent_.size()));
  if (!fresh) return entry->second;
  int64_t slots = 1;
  for (const Program& program : programs.programs) {
    if (named->second.slot_bytes > 0) slots = std::max(slots, program.num_slots);
  }
  Persistent& one = persistent_.emplace_back();
  one.name = name;
  for (int64_t slot = 0; slot < slots; ++slot) {
    one.rects.push_back(ByteRect::of(named->second, slot));
  }
  return entry->second;
}

bool ExpectedContents::is_result(int index, ValueId id) const {
  const std::vector<ValueId>& outputs = graph(index).outputs();
  return std::find(outputs.begin(), outputs.end(), id) != outputs.end();
}

void ExpectedContents::begin_run(const Program& program) {
  running_ = &graphs_.at(static_cast<size_t>(program.graph));
  first_run_ += 2;
  for (const Instruction& instruction : program.instructions) {
    const Node& node = running_->graph->nodes().at(static_cast<size_t>(instruction.node));
    for (const ValueId id : node.outputs) running_->made_in[id] = first_run_ + instruction.ahead;
  }
}

void ExpectedContents::begin_instruction(const Instruction& instruction, int64_t slot) {
  run_ = first_run_ + instruction.ahead;
  slot_ = slot;
}

size_t ExpectedContents::slot_of(const Operand& operand) const {
  return static_cast<size_t>(operand.slot_bytes > 0 ? slot_ : 0);
}

const Parts& ExpectedContents::parts(ValueId id, const Operand& operand) const {
  static const Parts kNone;
  const bool made_here = running_->made_in[id] == run_;
  const int index = running_->persistent[id];
  // Of a pair, backward reads what an earlier forward left in its slot, and nothing else that the
  // other half makes.
  const bool of_other_half = !made_here && running_->made_in[id] >= first_run_;
  const bool is_earlier = run_ == first_run_ && operand.slot_bytes > 0;
  if (of_other_half && index < 0 && !is_earlier) return kNone;
  if (made_here || index < 0 || running_->is_view[id]) {
    const std::vector<Known>& slots = running_->known[id];
    if (slots.size() <= slot_of(operand)) return kNone;
    const Known& known = slots[slot_of(operand)];
    return made_here && known.run != run_ ? kNone : known.parts;
  }
  const Persistent& persistent = persistent_[static_cast<size_t>(index)];
  return persistent.changed_in >= run_ ? persistent.before : persistent.latest;
}

void ExpectedContents::note_read(ValueId id) {
  const int index = running_->persistent[id];
  if (index < 0) return;
  int64_t& latest = persistent_[static_cast<size_t>(index)].read_in;
  latest = std::max(latest, run_);
}

bool ExpectedContents::was_read_ahead(ValueId id) const {
  const int index = running_->persistent[id];
  return index >= 0 && persistent_[static_cast<size_t>(index)].read_in > run_;
}

void ExpectedContents::set_view(ValueId id, const Operand& operand, Parts parts) {
  std::vector<Known>& slots = running_->known[id];
  if (slots.size() <= slot_of(operand)) slots.resize(slot_of(operand) + 1);
  slots[slot_of(operand)] = {std::move(parts), run_};
}

void ExpectedContents::set_written(ValueId id, const Operand& operand, const ByteRect& rect,
                                   MemoryMap::Writer writer) {
  set_view(id, operand, {{rect, writer}});
  const int index = running_->persistent[id];
  if (index < 0) return;
  Persistent& one = persistent_[static_cast<size_t>(index)];
  if (one.changed_in != run_) {
    one.before = one.latest;
    one.changed_in = run_;
  }
  Parts left;
  for (const MemoryMap::Content& part : one.latest) {
    for (const ByteRect& rest : without({part.rect}, rect, /*at_least=*/true)) {
      left.push_back({rest, part.writer});
    }
  }
  left.push_back({rect, writer});
  one.latest = std::move(left);
}

}  // namespace skein
