#include "skein/passes/memory/plan_memory.h"

#include <algorithm>
#include <set>

#include "skein/base/text/units.h"
#include "skein/ops/linear/linear.h"
#include "skein/passes/memory/interval_packer.h"
#include "skein/passes/memory/storage.h"

namespace skein {
namespace {

Arena arena_of(Role role) {
  switch (role) {
    case Role::kParameter:
      return Arena::kWeights;
    case Role::kGradient:
      return Arena::kGradients;
    case Role::kOptimizer:
      return Arena::kOptimizer;
    case Role::kInput:
      return Arena::kInputs;
    case Role::kCache:
      return Arena::kCache;
    case Role::kRounded:
      return Arena::kRounded;
    case Role::kActivation:
      break;
  }
  return Arena::kWorkspace;
}

struct Lifetime {
  int first = -1;  // node index
  int last = -1;
  Phase first_phase = Phase::kForward;
  Phase last_phase = Phase::kForward;
  int chunk = 0;
  bool on_host = false;  // what `stash` gives
};

class GraphPlanner {
 public:
  GraphPlanner(const GraphToPlan& request, int index, const KernelTable& kernels, ProgramSet& set)
      : request_(request), index_(index), graph_(*request.graph), kernels_(kernels), set_(set) {
    assignment_ = assign_storage(graph_);
    offsets_.resize(assignment_.storages.size(), -1);
    arenas_.resize(assignment_.storages.size(), Arena::kWorkspace);
    lifetimes_.resize(assignment_.storages.size());
    slot_bytes_.resize(assignment_.storages.size(), 0);
  }

  void run() {
    find_lifetimes();
    place_persistent();
    place_activations();
    place_workspace();
    write_programs();
  }

 private:
  const StoragePlace& place(ValueId id) const { return assignment_.places.at(id); }

  void find_lifetimes() {
    for (size_t index = 0; index < graph_.nodes().size(); ++index) {
      const Node& node = graph_.nodes()[index];
      for (const auto* ids : {&node.inputs, &node.outputs}) {
        for (const ValueId id : *ids) {
          if (id == kNoValue) continue;
          Lifetime& life = lifetimes_[place(id).storage];
          if (life.first < 0) {
            life.first = static_cast<int>(index);
            life.first_phase = node.phase;
            life.chunk = node.chunk;
          }
          life.last = static_cast<int>(index);
          life.last_phase = node.phase;
        }
      }
      if (node.op->outputs_on_host) {
        for (const ValueId id : node.outputs) lifetimes_[place(id).storage].on_host = true;
      }
    }
  }

  int64_t take(Arena arena, int64_t bytes) {
    int64_t& size = set_.arena_bytes[static_cast<int>(arena)];
    const int64_t offset = size;
    size = round_up(offset + bytes, kArenaAlignment);
    return offset;
  }

  void place_persistent() {
    // Results that the host reads live among the inputs.
    for (const ValueId id : graph_.outputs()) {
      Storage& storage = assignment_.storages[place(id).storage];
      if (storage.role == Role::kActivation) storage.role = Role::kInput;
    }
    adopt_known_storages();
    const std::set<int> in_slots = storages_of_batch();
    for (size_t i = 0; i < assignment_.storages.size(); ++i) {
      const Storage& storage = assignment_.storages[i];
      if (storage.role == Role::kActivation || offsets_[i] >= 0) continue;
      arenas_[i] = arena_of(storage.role);
      int64_t bytes = storage.num_bytes();
      if (in_slots.contains(static_cast<int>(i))) {
        slot_bytes_[i] = round_up(bytes, kArenaAlignment);
        bytes = slot_bytes_[i] * slots(0);
      }
      offsets_[i] = take(arenas_[i], bytes);
    }
    for (size_t id = 0; id < graph_.values().size(); ++id) {
      const Value& value = graph_.values()[id];
      if (!is_persistent(static_cast<ValueId>(id))) continue;
      const auto [entry, fresh] = set_.named.emplace(value.name, operand(static_cast<int>(id)));
      set_.types.emplace(value.name, value.type);
      const Operand now = operand(static_cast<int>(id));
      const bool may_have_fewer = value.role == Role::kInput || value.role == Role::kActivation;
      const bool fits = may_have_fewer
                            ? has_rows_of(entry->second, now)
                            : entry->second.shape == now.shape && entry->second.dtype == now.dtype;
      if (!fresh && !fits) {
        fail(ErrorCode::kInternal, "two graphs disagree about '{}': {} and {}", value.name,
             entry->second.shape.to_string(), value.type.shape.to_string());
      }
    }
  }

  // Whether `now` is `known`, or its first rows.
  static bool has_rows_of(const Operand& known, const Operand& now) {
    if (known.dtype != now.dtype || known.shape.rank() != now.shape.rank()) return false;
    if (now.shape.rank() == 0) return true;
    Shape rows = known.shape;
    rows.set_dim(0, now.shape.dim(0));
    return rows == now.shape && now.shape.dim(0) <= known.shape.dim(0);
  }

  // Those of what the host gives a micro-batch, where two of them are at work at once.
  std::set<int> storages_of_batch() const {
    std::set<int> found;
    for (size_t id = 0; request_.in_pairs && id < graph_.values().size(); ++id) {
      const Value& value = graph_.values()[id];
      if (value.producer < 0 && request_.batch_inputs.contains(value.name)) {
        found.insert(place(static_cast<ValueId>(id)).storage);
      }
    }
    return found;
  }

  bool is_persistent(ValueId id) const {
    const auto& outputs = graph_.outputs();
    const bool is_output = std::find(outputs.begin(), outputs.end(), id) != outputs.end();
    return place(id).storage >= 0 && (graph_.value(id).role != Role::kActivation || is_output);
  }

  // Persistent values that an earlier graph placed keep their place.
  void adopt_known_storages() {
    for (size_t id = 0; id < graph_.values().size(); ++id) {
      const Value& value = graph_.values()[id];
      if (!is_persistent(static_cast<ValueId>(id))) continue;
      const auto known = set_.named.find(value.name);
      if (known == set_.named.end()) continue;
      const StoragePlace& at = place(id);
      const Storage& storage = assignment_.storages[at.storage];
      const int64_t start =
          known->second.offset_bytes - (at.row * storage.cols + at.col) * size_of(storage.dtype);
      if (offsets_[at.storage] >= 0 && offsets_[at.storage] != start) {
        fail(ErrorCode::kInternal, "'{}' is laid out differently by two graphs", value.name);
      }
      arenas_[at.storage] = known->second.arena;
      offsets_[at.storage] = start;
    }
  }

  void place_activations() {
    for (const int chunk : chunks()) {
      for (size_t i = 0; i < lifetimes_.size(); ++i) {
        const Lifetime& life = lifetimes_[i];
        if (!is_kept(i) || life.chunk != chunk || life.last_phase != Phase::kUpdate) continue;
        arenas_[i] = Arena::kGradients;  // gradients on their way to their range
        offsets_[i] = take(Arena::kGradients, assignment_.storages[i].num_bytes());
      }
    }
    place_kept(Arena::kActivations, /*on_host=*/false);
    place_kept(Arena::kHostActivations, /*on_host=*/true);
  }

  bool is_kept(size_t storage) const {
    const Lifetime& life = lifetimes_[storage];
    return offsets_[storage] < 0 && life.first >= 0 && life.first_phase != life.last_phase;
  }

  // Chunk by chunk; within a chunk a region a slot.
  void place_kept(Arena arena, bool on_host) {
    int64_t bytes = 0;
    for (const int chunk : chunks()) {
      const int64_t first = bytes;
      std::vector<size_t> kept;
      for (size_t i = 0; i < lifetimes_.size(); ++i) {
        if (!is_kept(i) || lifetimes_[i].chunk != chunk || lifetimes_[i].on_host != on_host) {
          continue;
        }
        arenas_[i] = arena;
        offsets_[i] = bytes;
        bytes = round_up(bytes + assignment_.storages[i].num_bytes(), kArenaAlignment);
        kept.push_back(i);
      }
      for (const size_t i : kept) slot_bytes_[i] = bytes - first;
      bytes = first + (bytes - first) * slots(chunk);
    }
    grow(arena, bytes);
  }

  std::set<int> chunks() const {
    std::set<int> all;
    for (const Node& node : graph_.nodes()) all.insert(node.chunk);
    return all;
  }

  int64_t slots(int chunk) const {
    const auto found = request_.slots.find(chunk);
    return found == request_.slots.end() ? 1 : found->second;
  }

  void grow(Arena arena, int64_t bytes) {
    int64_t& size = set_.arena_bytes[static_cast<int>(arena)];
    size = std::max(size, bytes);
  }

  void place_workspace() {
    std::vector<size_t> order;
    for (size_t i = 0; i < lifetimes_.size(); ++i) {
      if (offsets_[i] < 0 && lifetimes_[i].first >= 0) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      return assignment_.storages[a].num_bytes() > assignment_.storages[b].num_bytes();
    });
    IntervalPacker packer(request_.in_pairs);
    for (const size_t i : order) {
      const int64_t bytes = round_up(assignment_.storages[i].num_bytes(), kArenaAlignment);
      const Lifetime& life = lifetimes_[i];
      offsets_[i] = packer.place(bytes, life.first, life.last, life.first_phase);
    }
    scratch_offset_ = packer.peak_bytes();
    grow(Arena::kWorkspace, scratch_offset_);
  }

  Operand operand(ValueId id) const {
    if (id == kNoValue) return {};
    const StoragePlace& at = place(id);
    const Storage& storage = assignment_.storages[at.storage];
    Operand result;
    result.arena = arenas_[at.storage];
    result.slot_bytes = slot_bytes_[at.storage];
    result.dtype = storage.dtype;
    result.shape = graph_.type(id).local_shape(graph_.mesh());
    result.offset_bytes =
        offsets_[at.storage] + (at.row * storage.cols + at.col) * size_of(storage.dtype);
    // A vector is one row to a kernel; a matrix keeps the stride of its storage.
    result.row_stride = result.shape.rank() < 2 ? result.shape.cols() : storage.cols;
    return result;
  }

  const std::string& program_name(Phase phase) const {
    return phase == Phase::kForward    ? request_.forward
           : phase == Phase::kBackward ? request_.backward
                                       : request_.update;
  }

  void write_programs() {
    const std::set<int> all = chunks();
    for (const Phase phase : {Phase::kForward, Phase::kBackward, Phase::kUpdate}) {
      for (const int chunk : all) write_program(phase, chunk, all.size() > 1);
    }
  }

  void write_program(Phase phase, int chunk, bool several) {
    Program program{program_name(phase), {}, 1, index_};
    Program first{program.name + ".first", {}, 1, index_};
    Program last{program.name + ".last", {}, 1, index_};
    Program only{program.name + ".only", {}, 1, index_};
    bool begins_sums = false;
    for (size_t i = 0; i < graph_.nodes().size(); ++i) {
      Node node = graph_.nodes()[i];
      if (node.phase != phase || node.chunk != chunk) continue;
      Instruction in_first = make_instruction(node, i);
      Instruction in_others = in_first;
      if (request_.several_micro_batches && is_from_zero(node.attrs)) {
        begins_sums = true;
        node.attrs.set(std::string(kFromZero), false);
        in_others = make_instruction(node, i);
      }
      last.instructions.push_back(in_others);
      only.instructions.push_back(in_first);
      if (node.last_only) continue;
      program.instructions.push_back(std::move(in_others));
      first.instructions.push_back(std::move(in_first));
    }
    const bool ends_differently = last.instructions.size() > program.instructions.size();
    add_program(std::move(program), phase, chunk, several);
    if (begins_sums) add_program(std::move(first), phase, chunk, several);
    if (ends_differently) add_program(std::move(last), phase, chunk, several);
    if (begins_sums && ends_differently && request_.also_one_micro_batch) {
      add_program(std::move(only), phase, chunk, several);
    }
  }

  void add_program(Program program, Phase phase, int chunk, bool several) {
    if (program.instructions.empty()) return;
    if (program_name(phase).empty()) {
      fail(ErrorCode::kInternal, "the graph has {} nodes in an unexpected phase",
           phase_name(phase));
    }
    if (phase != Phase::kUpdate) {
      program.num_slots = slots(chunk);
      if (several) program.name += fmt::format(".{}", chunk);
    }
    set_.programs.push_back(std::move(program));
  }

  // `index`: of the node in the graph.
  Instruction make_instruction(const Node& node, size_t index) {
    Instruction instruction;
    instruction.node = static_cast<int>(index);
    instruction.op = node.op;
    instruction.attrs = node.attrs;
    instruction.scope = node.scope.name;
    for (const ValueId id : node.inputs) instruction.inputs.push_back(operand(id));
    for (const ValueId id : node.outputs) instruction.outputs.push_back(operand(id));
    if (node.op->cost != nullptr) instruction.cost = node.op->cost(graph_.call(node));
    if (node.op->localize != nullptr) {
      node.op->localize(graph_.call(node), set_.rank, instruction.attrs);
    }
    instruction.scratch_offset_bytes = scratch_offset_;
    const auto kernel = kernels_.find(node.op->name);
    if (kernel != kernels_.end() && kernel->second.scratch_bytes != nullptr) {
      instruction.scratch_bytes =
          kernel->second.scratch_bytes(bind_views(instruction, made_up_bases()));
      grow(Arena::kWorkspace,
           round_up(scratch_offset_ + instruction.scratch_bytes, kArenaAlignment));
    }
    return instruction;
  }

  const GraphToPlan& request_;
  const int index_;
  const Graph& graph_;
  const KernelTable& kernels_;
  ProgramSet& set_;
  StorageAssignment assignment_;
  std::vector<int64_t> offsets_;  // by storage; -1: not placed yet
  std::vector<Arena> arenas_;
  std::vector<int64_t> slot_bytes_;
  std::vector<Lifetime> lifetimes_;
  int64_t scratch_offset_ = 0;
};

}  // namespace

ProgramSet plan_memory(const std::vector<GraphToPlan>& graphs, const KernelTable& kernels,
                       int64_t rank) {
  ProgramSet set;
  set.mesh = graphs.front().graph->mesh();
  set.rank = rank;
  set.on_host[static_cast<size_t>(Arena::kHostActivations)] = true;
  for (size_t i = 0; i < graphs.size(); ++i) {
    GraphPlanner(graphs[i], static_cast<int>(i), kernels, set).run();
  }
  return set;
}

}  // namespace skein
