#include "skein/passes/parallel/take_stage.h"

#include <map>
#include <set>

#include "skein/ops/pipeline/pipeline.h"

namespace skein {
namespace {

class StageTaker {
 public:
  StageTaker(const Graph& whole, const PipelineShape& shape, const ChunkOfScope& chunk_of,
             int64_t stage)
      : whole_(whole),
        shape_(shape),
        stage_(stage),
        send_buffers_(send_buffers(shape)),
        part_(whole.mesh()) {
    for (const Node& node : whole.nodes()) chunk_.push_back(chunk_of(node.scope));
  }

  Graph run() {
    find_crossings();
    add_inputs();
    for (size_t i = 0; i < whole_.nodes().size(); ++i) {
      if (shape_.stage_of(chunk_[i]) == stage_) add_node(i);
    }
    for (const ValueId id : whole_.outputs()) {
      if (mine_.contains(id)) part_.mark_output(mine_.at(id));
    }
    return std::move(part_);
  }

 private:
  // Finds the chunks that read a value, other than the one that makes it.
  void find_crossings() {
    for (size_t i = 0; i < whole_.nodes().size(); ++i) {
      for (const ValueId id : whole_.nodes()[i].inputs) {
        if (id == kNoValue || whole_.value(id).producer < 0) continue;
        const int from = chunk_[whole_.value(id).producer];
        if (from == chunk_[i]) continue;
        if (std::abs(from - chunk_[i]) != 1) {
          fail(ErrorCode::kInternal, "'{}' goes from chunk {} to chunk {}, not a neighbour",
               whole_.value(id).name, from, chunk_[i]);
        }
        crossings_[id].insert(chunk_[i]);
      }
    }
  }

  void add_inputs() {
    std::vector<bool> used(whole_.values().size(), false);
    for (size_t i = 0; i < whole_.nodes().size(); ++i) {
      if (shape_.stage_of(chunk_[i]) != stage_) continue;
      for (const ValueId id : whole_.nodes()[i].inputs) {
        if (id != kNoValue) used[id] = true;
      }
    }
    for (size_t id = 0; id < used.size(); ++id) {
      const Value& value = whole_.values()[id];
      if (used[id] && value.producer < 0) {
        mine_[static_cast<ValueId>(id)] = part_.add_input(value.role, value.name, value.type);
      }
    }
  }

  void add_node(size_t index) {
    const Node& node = whole_.nodes()[index];
    const int chunk = chunk_[index];
    part_.set_scope(node.scope);
    part_.set_phase(node.phase);
    part_.set_chunk(chunk);
    std::vector<ValueId> inputs;
    for (const ValueId id : node.inputs) {
      inputs.push_back(id == kNoValue ? id : here(id, chunk, node.phase));
    }
    std::vector<std::string> names;
    for (const ValueId id : node.outputs) names.push_back(whole_.value(id).name);
    const auto outputs = part_.add(*node.op, std::move(inputs), node.attrs, names);
    for (size_t i = 0; i < outputs.size(); ++i) {
      const ValueId id = node.outputs[i];
      part_.value(outputs[i]).transient = whole_.value(id).transient;
      mine_[id] = outputs[i];
      if (!crossings_.contains(id)) continue;
      for (const int to : crossings_.at(id)) send_to(id, chunk, to);
    }
  }

  // Forward values go to the next chunk, gradients to the previous one, each in their own group.
  static std::string_view group(int from, int to) {
    return to > from ? kForwardGroup : kBackwardGroup;
  }

  ValueId here(ValueId id, int chunk, Phase phase) {
    const int producer = whole_.value(id).producer;
    if (producer < 0 || chunk_[producer] == chunk) return mine_.at(id);
    ValueId& received = received_.try_emplace({id, chunk}, kNoValue).first->second;
    if (received == kNoValue) {
      const int from = chunk_[producer];
      if (whole_.nodes()[producer].phase != phase) {
        fail(ErrorCode::kInternal, "'{}' crosses to chunk {} in another phase",
             whole_.value(id).name, chunk);
      }
      received = receive(part_, whole_.type(id), group(from, chunk), shape_.stage_of(from),
                         whole_.value(id).name + ".received");
    }
    return received;
  }

  void send_to(ValueId id, int from, int to) {
    const std::string name = "send." + whole_.value(id).name;
    const ValueId buffer =
        part_.add_input(Role::kInput, name, send_buffer_type(whole_.type(id), send_buffers_));
    send(part_, mine_.at(id), buffer, group(from, to), shape_.stage_of(to),
         2 * int64_t{from} + (to > from ? 0 : 1), send_buffers_);
  }

  const Graph& whole_;
  const PipelineShape& shape_;
  const int64_t stage_;
  const int64_t send_buffers_;
  Graph part_;
  std::vector<int> chunk_;  // by node
  std::map<ValueId, std::set<int>> crossings_;
  std::map<ValueId, ValueId> mine_;  // by value of the whole graph
  std::map<std::pair<ValueId, int>, ValueId> received_;
};

}  // namespace

ChunkOfScope chunks_by_layers(int64_t num_layers, int64_t num_chunks) {
  std::vector<int> chunk_of_layer;
  int chunk = 0;
  for (const LayerRange& range : chunk_layers(num_layers, num_chunks)) {
    chunk_of_layer.insert(chunk_of_layer.end(), static_cast<size_t>(range.size()), chunk++);
  }
  return [chunk_of_layer, last = chunk - 1](const Scope& scope) {
    if (scope.is_layer()) return chunk_of_layer.at(scope.layer);
    return scope.layer == Scope::kBehind ? last : 0;
  };
}

Graph take_stage(const Graph& graph, const PipelineShape& shape, const ChunkOfScope& chunk_of,
                 int64_t stage) {
  return StageTaker(graph, shape, chunk_of, stage).run();
}

}  // namespace skein
