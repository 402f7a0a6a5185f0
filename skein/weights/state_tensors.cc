#include "skein/weights/state_tensors.h"

#include <algorithm>
#include <map>

#include "skein/checkpoint/save/stored_part.h"
#include "skein/ops/optimizer.h"
#include "skein/weights/initialize.h"

namespace skein {

std::string StateTensor::parameter() const {
  const auto of_optimizer = parse_state_name(name);
  return of_optimizer ? of_optimizer->parameter : name;
}

namespace {

// The range without what lies behind `elements`.
FlatRange cut(FlatRange range, int64_t elements) {
  const int64_t count = std::clamp<int64_t>(elements - range.begin, 0, range.count);
  return {count == 0 ? 0 : range.begin, count};
}

// Leaves out the rows behind those of `shape`, which pad the vocabulary.
void leave_out_padding(StateTensor& tensor, const Shape& shape) {
  if (tensor.spec.shape == shape) return;
  const Box inside = rows_inside(tensor.box, shape);
  const int64_t elements = inside.shape.num_elements();
  tensor.spec.shape = shape;
  tensor.spec.range = cut(*tensor.spec.range, elements);
  const FlatRange held = cut(tensor.range, elements);
  tensor.padding = tensor.range.count - held.count;
  tensor.range = held;
  if (elements > 0) {
    tensor.box = tensor.spec.slice = inside;
    return;
  }
  // No row of the model: nothing is stored or read, and the slice is any that it has.
  tensor.spec.slice.offset[0] = 0;
  tensor.spec.slice.shape.set_dim(0, 1);
  tensor.box = tensor.spec.slice;
}

}  // namespace

std::vector<StateTensor> state_tensors(const Graph& training_graph, const DecoderConfig& model,
                                       int64_t rank,
                                       const std::set<std::string>& stored_elsewhere) {
  const Mesh& mesh = training_graph.mesh();
  std::map<std::string, Shape, std::less<>> shapes;
  for (const ParameterSpec& spec : parameter_specs(model)) shapes[spec.name] = spec.shape;
  std::vector<StateTensor> tensors;
  for (const Role role : {Role::kParameter, Role::kOptimizer}) {
    for (const Value& value : training_graph.values()) {
      if (value.role != role) continue;
      const char* group = role == Role::kParameter ? "weights" : "optimizer";
      const StoredPart part = stored_part(value.type, mesh, rank);
      StateTensor& tensor = tensors.emplace_back(
          StateTensor{TensorSpec::part(value.name, value.type, part, group), value.name,
                      value.type.local_box(mesh, rank), value.type.local_range(mesh, rank)});
      const auto shape = shapes.find(tensor.parameter());
      if (shape != shapes.end()) leave_out_padding(tensor, shape->second);
      if (stored_elsewhere.contains(tensor.parameter())) tensor.spec.range->count = 0;
    }
  }
  return tensors;
}

std::vector<TensorSpec> specs_of(const std::vector<StateTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const StateTensor& tensor : tensors) specs.push_back(tensor.spec);
  return specs;
}

std::vector<View> state_views(const Executor& executor, const std::vector<StateTensor>& tensors) {
  std::vector<View> views;
  for (const StateTensor& tensor : tensors) {
    View& view = views.emplace_back(executor.view(tensor.name));
    const bool is_range = view.shape.rank() < tensor.spec.slice.shape.rank();
    if (tensor.padding > 0 && !is_range) view.shape.set_dim(0, tensor.spec.slice.shape.dim(0));
  }
  return views;
}

void restore_state(const CheckpointReader& reader, const std::vector<StateTensor>& tensors,
                   Executor& executor) {
  for (const StateTensor& tensor : tensors) {
    const ManifestTensor* stored = reader.find(tensor.name);
    if (stored == nullptr) {
      fail(ErrorCode::kInvalid,
           "{} has no tensor '{}', which this configuration needs: resume with the precision, "
           "moments and model that the run began with, or start another run.dir with "
           "model.init_from",
           reader.path().string(), tensor.name);
    }
    if (!(stored->shape == tensor.spec.shape) || stored->dtype != tensor.spec.dtype) {
      fail(ErrorCode::kInvalid, "{}: tensor '{}' is {}{}, this configuration needs {}{}",
           reader.path().string(), tensor.name, dtype_name(stored->dtype),
           stored->shape.to_string(), dtype_name(tensor.spec.dtype), tensor.spec.shape.to_string());
    }
  }
  std::vector<std::byte> bytes;
  for (const StateTensor& tensor : tensors) {
    const View target = executor.view(tensor.name);
    const int64_t element_bytes = size_of(target.dtype);
    for (int64_t done = 0; done < tensor.range.count; done += kUploadPieceElements) {
      const int64_t count = std::min(kUploadPieceElements, tensor.range.count - done);
      bytes.resize(static_cast<size_t>(count * element_bytes));
      reader.read_range(tensor.name, tensor.box, {tensor.range.begin + done, count}, target.dtype,
                        bytes);
      executor.device().upload(static_cast<char*>(target.data) + done * element_bytes, bytes.data(),
                               static_cast<int64_t>(bytes.size()));
    }
    if (tensor.padding == 0) continue;
    executor.device().fill_zero(
        static_cast<char*>(target.data) + tensor.range.count * element_bytes,
        tensor.padding * element_bytes);
  }
}

}  // namespace skein
