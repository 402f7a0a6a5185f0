#include "skein/passes/memory/check_memory.h"

#include <map>
#include <set>
#include <utility>

#include "skein/passes/memory/expected_contents.h"
#include "skein/passes/memory/memory_map.h"

namespace skein {
namespace {

using Writer = MemoryMap::Writer;
using Part = MemoryMap::Content;

class MemoryChecker {
 public:
  MemoryChecker(const std::vector<const Graph*>& graphs, const ProgramSet& programs)
      : programs_(programs), expected_(graphs, programs) {
    for (const Program& program : programs.programs) {
      for (const Instruction& instruction : program.instructions) {
        if (!instruction.op->ended_by.empty()) ends_.insert(instruction.op->ended_by);
      }
      check_whole(program);
    }
    write_persistent();
  }

  void run(const std::vector<MemoryRun>& runs) {
    std::map<std::string_view, const Program*> by_name;
    for (const Program& program : programs_.programs) by_name[program.name] = &program;
    for (const MemoryRun& run : runs) {
      const auto found = by_name.find(run.program);
      if (found == by_name.end()) {
        fail(ErrorCode::kInternal, "there is no program '{}'", run.program);
      }
      run_program(*found->second, run.slot);
      if (run.ends_step) end_step();
    }
  }

 private:
  using Persistent = ExpectedContents::Persistent;

  struct UnderWay {
    std::string_view end;
    int64_t channel;
    std::string begun;  // in words
    std::vector<ByteRect> reads, writes;
  };
  struct WrittenBy {
    const Program* program;  // null: before the first program
    int instruction;
    std::string_view value;
  };

  // Every node of its phases and chunk is a step, once; those of the last micro-batch alone all or
  // none.
  void check_whole(const Program& program) {
    const std::vector<Node>& nodes = expected_.graph(program.graph).nodes();
    std::vector<int> times(nodes.size());
    bool has_last = false;
    std::set<std::pair<Phase, int>> wanted;
    for (const Instruction& instruction : program.instructions) {
      ++times.at(static_cast<size_t>(instruction.node));
      const Node& node = nodes[static_cast<size_t>(instruction.node)];
      has_last |= node.last_only;
      wanted.insert({node.phase, node.chunk});
    }
    for (size_t i = 0; i < nodes.size(); ++i) {
      const bool belongs =
          wanted.contains({nodes[i].phase, nodes[i].chunk}) && (has_last || !nodes[i].last_only);
      if (times[i] != (belongs ? 1 : 0)) {
        fail(ErrorCode::kInternal, "program '{}' has node {} [{}] of the graph {} times",
             program.name, i, nodes[i].op->name, times[i]);
      }
    }
  }

  void write_persistent() {
    for (Persistent& one : expected_.persistent()) {
      written_by_.push_back({nullptr, 0, one.name});
      for (const ByteRect& rect : one.rects) {
        one.latest.push_back({rect, static_cast<Writer>(written_by_.size()) - 1});
        memory_.write(rect, one.latest.back().writer);
      }
    }
    for (const Persistent& one : expected_.persistent()) expect_whole("at the beginning", one);
  }

  // ---- a run

  void run_program(const Program& program, int64_t slot) {
    program_ = &program;
    graph_ = &expected_.graph(program.graph);
    expected_.begin_run(program);
    const auto begin_instruction = [&](const Instruction& instruction) {
      slot_ = instruction.slot_of(slot, program.num_slots);
      expected_.begin_instruction(instruction, slot_);
    };
    for (instruction_ = 0; instruction_ < static_cast<int>(program.instructions.size());
         ++instruction_) {
      const Instruction& instruction = program.instructions[static_cast<size_t>(instruction_)];
      begin_instruction(instruction);
      run_instruction(instruction);
    }
    for (const Instruction& instruction : program.instructions) {
      begin_instruction(instruction);
      check_results(instruction);
    }
    for (const UnderWay& work : under_way_) {
      for (const auto* rects : {&work.reads, &work.writes}) {
        for (const ByteRect& rect : *rects) {
          if (rect.arena != Arena::kWorkspace) continue;
          fail(ErrorCode::kInternal, "program '{}' ends while {} is at work in the workspace",
               program.name, work.begun);
        }
      }
    }
    memory_.clear(Arena::kWorkspace);
  }

  void run_instruction(const Instruction& instruction) {
    const Node& node = graph_->nodes().at(static_cast<size_t>(instruction.node));
    if (node.op != instruction.op || node.inputs.size() != instruction.inputs.size() ||
        node.outputs.size() != instruction.outputs.size()) {
      reject(instruction, "it is not node {} [{}] of the graph", instruction.node, node.op->name);
    }
    end_work(instruction);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue) read(instruction, node.inputs[i], instruction.inputs[i]);
    }
    const Layout& layout = expected_.layout(program_->graph, instruction.node);
    check_layout(instruction, node, layout);
    write_scratch(instruction, node);
    for (size_t i = 0; i < node.outputs.size(); ++i) write(instruction, node, layout, i);
    begin_work(instruction, node);
  }

  // ---- reading

  void read(const Instruction& instruction, ValueId id, const Operand& operand) {
    const ByteRect rect = ByteRect::of(operand, slot_);
    const std::string& name = graph_->value(id).name;
    expected_.note_read(id);
    std::vector<ByteRect> elsewhere = {rect};
    if (rect.empty()) elsewhere.clear();
    for (const Part& part : expected_.parts(id, operand)) {
      elsewhere = without(elsewhere, part.rect, /*at_least=*/false);
      const auto met = common(part.rect, rect);
      const auto missing = met ? memory_.missing(*met, part.writer) : std::nullopt;
      if (missing) {
        reject(instruction, "reads '{}', but {} holds {}", name, describe(*missing),
               holder(*missing));
      }
    }
    if (!elsewhere.empty()) {
      reject(instruction, "reads '{}' at {}, where it was not written: that holds {}", name,
             describe(elsewhere.front()), holder(elsewhere.front()));
    }
    for (const UnderWay& work : under_way_) {
      check_apart(instruction, work.writes, rect, work, "reads", name);
    }
  }

  std::string holder(const ByteRect& rect) const {
    const auto writer = memory_.writer_in(rect);
    if (!writer) return "nothing";
    const WrittenBy& by = written_by_[static_cast<size_t>(*writer)];
    if (by.program == nullptr) return fmt::format("'{}'", by.value);
    return fmt::format("{} of instruction {} of program '{}'", by.value, by.instruction,
                       by.program->name);
  }

  // ---- writing

  // Aliases and concatenations lie where the layout says.
  void check_layout(const Instruction& instruction, const Node& node, const Layout& layout) {
    const auto expect_at = [&](ValueId id, const Operand& operand, const Operand& base,
                               int64_t row) {
      const int64_t row_elements = base.shape.rank() < 2 ? 1 : base.row_stride;
      const int64_t expected = base.offset_bytes + row * row_elements * size_of(base.dtype);
      const bool same_rows = operand.shape.rank() < 2 || operand.shape.rows() < 2 ||
                             operand.row_stride == base.row_stride;
      if (operand.arena == base.arena && operand.offset_bytes == expected && same_rows) return;
      reject(instruction, "'{}' lies at {}, the op's layout wants it at {}+{}",
             graph_->value(id).name, describe(ByteRect::of(operand, slot_)), arena_name(base.arena),
             expected);
    };
    for (const Alias& alias : layout.aliases) {
      if (node.inputs.at(alias.input) == kNoValue) continue;
      expect_at(node.outputs.at(alias.output), instruction.outputs.at(alias.output),
                instruction.inputs.at(alias.input), alias.row_offset);
    }
    for (const Bundle& bundle : layout.bundles) {
      if (!bundle.required || bundle.dim != 0) continue;
      const auto& operands = bundle.outputs ? instruction.outputs : instruction.inputs;
      const auto& ids = bundle.outputs ? node.outputs : node.inputs;
      int64_t row = 0;
      for (const int i : bundle.operands) {
        if (ids.at(i) == kNoValue) continue;
        expect_at(ids[i], operands.at(i), operands.at(bundle.operands.front()), row);
        row += operands[i].shape.dim(0);
      }
    }
  }

  void write_scratch(const Instruction& instruction, const Node& node) {
    if (instruction.scratch_bytes == 0) return;
    const ByteRect rect = ByteRect::of(Arena::kWorkspace, instruction.scratch_offset_bytes, 1,
                                       instruction.scratch_bytes, instruction.scratch_bytes);
    for (const auto* operands : {&instruction.inputs, &instruction.outputs}) {
      for (size_t i = 0; i < operands->size(); ++i) {
        const bool is_there = operands == &instruction.outputs || node.inputs[i] != kNoValue;
        if (is_there && may_overlap(ByteRect::of((*operands)[i], slot_), rect)) {
          reject(instruction, "its scratch at {} lies on its own operands", describe(rect));
        }
      }
    }
    put(instruction, rect, "scratch");
  }

  void write(const Instruction& instruction, const Node& node, const Layout& layout, size_t index) {
    const ValueId id = node.outputs[index];
    const Operand& operand = instruction.outputs[index];
    const ByteRect rect = ByteRect::of(operand, slot_);
    const std::string& name = graph_->value(id).name;
    const Alias* alias = nullptr;
    for (const Alias& one : layout.aliases) {
      if (one.output == static_cast<int>(index) && node.inputs.at(one.input) != kNoValue) {
        alias = &one;
      }
    }
    if (alias != nullptr && !alias->in_place) {
      return expected_.set_view(id, operand, view_of(instruction, node, rect));
    }
    if (expected_.was_read_ahead(id)) {
      reject(instruction, "writes '{}', which the forward ahead has read", name);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const bool shares = alias != nullptr && alias->input == static_cast<int>(i);
      if (node.inputs[i] == kNoValue || shares) continue;
      if (may_overlap(ByteRect::of(instruction.inputs[i], slot_), rect)) {
        reject(instruction, "writes '{}' to {}, where it reads '{}'", name, describe(rect),
               graph_->value(node.inputs[i]).name);
      }
    }
    for (size_t i = 0; i < index; ++i) {
      if (may_overlap(ByteRect::of(instruction.outputs[i], slot_), rect)) {
        reject(instruction, "writes both '{}' and '{}' to {}", graph_->value(node.outputs[i]).name,
               name, describe(rect));
      }
    }
    expected_.set_written(id, operand, rect, put(instruction, rect, name));
  }

  // What inputs there are in `rect`: of several (concat), all.
  Parts view_of(const Instruction& instruction, const Node& node, const ByteRect& rect) {
    Parts parts;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.inputs[i] == kNoValue) continue;
      const Parts of_input =
          within(within(expected_.parts(node.inputs[i], instruction.inputs[i]), rect),
                 ByteRect::of(instruction.inputs[i], slot_));
      parts.insert(parts.end(), of_input.begin(), of_input.end());
    }
    return parts;
  }

  Writer put(const Instruction& instruction, const ByteRect& rect, std::string_view value) {
    for (const UnderWay& work : under_way_) {
      check_apart(instruction, work.reads, rect, work, "writes", value);
      check_apart(instruction, work.writes, rect, work, "writes", value);
    }
    const int64_t arena_bytes = programs_.arena_bytes[static_cast<size_t>(rect.arena)];
    if (!rect.empty() && (rect.begin < 0 || rect.end() > arena_bytes)) {
      reject(instruction, "writes '{}' to {}, outside of the arena", value, describe(rect));
    }
    written_by_.push_back({program_, instruction_, value});
    const Writer writer = static_cast<Writer>(written_by_.size()) - 1;
    memory_.write(rect, writer);
    return writer;
  }

  // ---- work beside the programs

  void begin_work(const Instruction& instruction, const Node& node) {
    if (instruction.op->ended_by.empty()) return;
    UnderWay work{instruction.op->ended_by,
                  instruction.attrs.integer("channel"),
                  fmt::format("instruction {} [{}] of program '{}'", instruction_,
                              instruction.op->name, program_->name),
                  {},
                  {}};
    for (const UnderWay& other : under_way_) {
      if (other.end == work.end && other.channel == work.channel) {
        reject(instruction, "begins channel {}, on which {} is at work", work.channel, other.begun);
      }
    }
    for (size_t i = 0; i < instruction.inputs.size(); ++i) {
      if (node.inputs[i] != kNoValue)
        work.reads.push_back(ByteRect::of(instruction.inputs[i], slot_));
    }
    for (const Operand& output : instruction.outputs)
      work.writes.push_back(ByteRect::of(output, slot_));
    under_way_.push_back(std::move(work));
  }

  void end_work(const Instruction& instruction) {
    if (!ends_.contains(instruction.op->name)) return;
    const int64_t channel = instruction.attrs.integer("channel");
    const size_t ended = std::erase_if(under_way_, [&](const UnderWay& work) {
      return work.end == instruction.op->name && work.channel == channel;
    });
    if (ended != 1) reject(instruction, "ends work on channel {} that nobody began", channel);
  }

  void check_apart(const Instruction& instruction, const std::vector<ByteRect>& rects,
                   const ByteRect& rect, const UnderWay& work, const char* what,
                   std::string_view name) const {
    for (const ByteRect& one : rects) {
      if (may_overlap(one, rect)) {
        reject(instruction, "{} '{}' at {}, where {} is still at work", what, name, describe(rect),
               work.begun);
      }
    }
  }

  // ---- after a run

  // Results of this program, for whoever reads them behind it.
  void check_results(const Instruction& instruction) {
    const Node& node = graph_->nodes()[static_cast<size_t>(instruction.node)];
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      if (!expected_.is_result(program_->graph, id)) continue;
      for (const Part& part : expected_.parts(id, instruction.outputs[i])) {
        if (const auto missing = memory_.missing(part.rect, part.writer)) {
          fail(ErrorCode::kInternal, "behind program '{}' {} of its result '{}' holds {}",
               program_->name, describe(*missing), graph_->value(id).name, holder(*missing));
        }
      }
    }
  }

  void end_step() {
    if (!under_way_.empty()) {
      fail(ErrorCode::kInternal, "a step ends, and {} is still at work: channel {} has no {}",
           under_way_.front().begun, under_way_.front().channel, under_way_.front().end);
    }
    for (const Persistent& one : expected_.persistent()) {
      expect_whole(fmt::format("behind program '{}'", program_->name), one);
    }
  }

  void expect_whole(const std::string& when, const Persistent& one) const {
    for (const Part& part : one.latest) {
      if (const auto missing = memory_.missing(part.rect, part.writer)) {
        fail(ErrorCode::kInternal, "{} {} of '{}' holds {}", when, describe(*missing), one.name,
             holder(*missing));
      }
    }
  }

  static std::string describe(const ByteRect& rect) {
    return fmt::format("{}+{} ({} x {} bytes)", arena_name(rect.arena), rect.begin, rect.rows,
                       rect.row_bytes);
  }

  template <typename... Args>
  [[noreturn]] void reject(const Instruction& instruction, fmt::format_string<Args...> format,
                           Args&&... args) const {
    fail(ErrorCode::kInternal, "program '{}', instruction {} [{}]{}: {}", program_->name,
         instruction_, instruction.op->name,
         instruction.scope.empty() ? "" : " (" + instruction.scope + ")",
         fmt::format(format, std::forward<Args>(args)...));
  }

  const ProgramSet& programs_;
  ExpectedContents expected_;
  std::set<std::string_view> ends_;  // ops that end what others began
  MemoryMap memory_;
  std::vector<WrittenBy> written_by_;  // by Writer
  std::vector<UnderWay> under_way_;
  const Program* program_ = nullptr;
  const Graph* graph_ = nullptr;
  int64_t slot_ = 0;
  int instruction_ = 0;
};

}  // namespace

void check_memory(const std::vector<const Graph*>& graphs, const ProgramSet& programs,
                  const std::vector<MemoryRun>& runs) {
  MemoryChecker(graphs, programs).run(runs);
}

}  // namespace skein
