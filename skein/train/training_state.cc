#include "skein/train/training_state.h"

namespace skein {

std::vector<StateTensor> state_tensors(const Graph& training_graph) {
  std::vector<StateTensor> tensors;
  for (const Role role : {Role::kParameter, Role::kOptimizer}) {
    for (const Value& value : training_graph.values()) {
      if (value.role != role) continue;
      const char* group = role == Role::kParameter ? "weights" : "optimizer";
      tensors.push_back(
          {TensorSpec::whole(value.name, value.type.dtype, value.type.shape, group), value.name});
    }
  }
  return tensors;
}

std::vector<View> state_views(const Executor& executor, const std::vector<StateTensor>& tensors) {
  std::vector<View> views;
  for (const StateTensor& tensor : tensors) views.push_back(executor.view(tensor.name));
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
    bytes.resize(static_cast<size_t>(target.num_bytes()));
    reader.read(tensor.name, tensor.spec.slice, tensor.spec.dtype, bytes);
    executor.upload(tensor.name, bytes.data(), target.num_bytes());
  }
}

}  // namespace skein
