#include "skein/train/training_state.h"

#include "skein/train/initialize.h"

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
    const int64_t element_bytes = size_of(target.dtype);
    for_each_piece(tensor.spec.shape, [&](const Slice& box, int64_t begin) {
      bytes.resize(static_cast<size_t>(box.shape.num_elements() * element_bytes));
      reader.read(tensor.name, box, target.dtype, bytes);
      executor.device().upload(static_cast<char*>(target.data) + begin * element_bytes,
                               bytes.data(), static_cast<int64_t>(bytes.size()));
    });
  }
}

}  // namespace skein
