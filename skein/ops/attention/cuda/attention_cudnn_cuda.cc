#include "skein/ops/attention/cuda/attention_cudnn_cuda.h"

#ifdef SKEIN_CUDNN

#include <dlfcn.h>

#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/ops/attention/cuda/attention_cudnn_graph_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/library_cuda.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend's; it takes cuDNN's functions from here
}

namespace skein::attention_cuda {
namespace {

// Of entries without a length; on compute capability 9 older ones are deterministic only with
// memory for all pairs.
constexpr size_t kLeastVersionOfDocuments = 92500;
// Older ones write the statistics packed, whatever strides were asked for (sdpa's check in the
// frontend 1.32).
constexpr size_t kLeastVersionOfSequences = 91200;

// ---- the library

// Messages of the library may end in empty lines.
std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string version_text(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

class Cudnn {
 public:
  // Null where there is none that can be used, which is logged once.
  static Cudnn* get() {
    static Cudnn* const cudnn = open().release();  // at the end of the process the driver is gone
    return cudnn;
  }

  // Null where cuDNN does not do this, which is logged, or where it cannot be planned now.
  const fe::graph::Graph* plan(const KernelCall& call, const Description& description) {
    const std::vector<int64_t> key = description.key();
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second.get();
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cuda::check(cudaStreamIsCapturing(cuda::stream_of(call), &status), "cudaStreamIsCapturing");
    if (status != cudaStreamCaptureStatusNone) return nullptr;
    return (plans_[key] = build(description)).get();
  }

  void execute(const KernelCall& call, const fe::graph::Graph& graph,
               std::unordered_map<int64_t, void*>& tensors, void* workspace) {
    const cudnnStatus_t status = fe::detail::set_stream(handle_, cuda::stream_of(call));
    if (status != CUDNN_STATUS_SUCCESS) {
      fail(ErrorCode::kInternal, "cudnnSetStream: {}", fe::detail::get_error_string(status));
    }
    fe::error_t error = graph.execute(handle_, tensors, workspace);
    if (!error.is_good()) fail(ErrorCode::kInternal, "cuDNN attention: {}", error.get_message());
  }

 private:
  static std::unique_ptr<Cudnn> open() {
    auto cudnn = std::make_unique<Cudnn>();
    try {
      cudnn->load();
      return cudnn;
    } catch (const std::exception& error) {
      log::warn("attention runs on our own kernels, not on cuDNN: {}", error.what());
      return nullptr;
    }
  }

  void load() {
    // The frontend opens both by their names, and finds what is loaded here from wherever it lies.
    static cuda::Library cudart("the CUDA runtime library", "libcudart.so", CUDART_VERSION / 1000,
                                "install the CUDA toolkit, or pip install nvidia-cuda-runtime and "
                                "put its folder into LD_LIBRARY_PATH");
    static cuda::Library library("cuDNN", "libcudnn.so", CUDNN_MAJOR,
                                 "install cudnn9-cuda-13, or pip install nvidia-cudnn-cu13 and put "
                                 "its folder into LD_LIBRARY_PATH");
    cudart.symbol("cudaGetDevice");
    library.symbol("cudnnGetVersion");
    const std::string cudnn_name = fmt::format("libcudnn.so.{}", CUDNN_MAJOR);
    const std::string cudart_name = fmt::format("libcudart.so.{}", CUDART_VERSION / 1000);
    fe::cudnn_dlhandle = dlopen(cudnn_name.c_str(), RTLD_NOW | RTLD_NOLOAD);
    setenv("CUDNN_FRONTEND_CUDART_LIB_NAME", cudart_name.c_str(), 0);
    // dq is summed in order in memory that grows with the tokens, not with the pairs (cuDNN 9.25).
    setenv("CUDNN_FRONTEND_ATTN_DP_WORKSPACE_LIMIT", "0", 0);
    version_ = fe::detail::get_backend_version();
    capability_ = compute_capability();
    const cudnnStatus_t status = fe::detail::create_handle(&handle_);
    if (status != CUDNN_STATUS_SUCCESS) {
      fail(ErrorCode::kUnsupported, "cudnnCreate: {}", fe::detail::get_error_string(status));
    }
  }

  std::unique_ptr<fe::graph::Graph> build(const Description& description) {
    const Problem& problem = description.problem;
    const auto say = [&](const std::string& why) {
      log::warn(
          "the {} of attention (head_dim {}, {} and {} heads, {} sequences of {}) runs on our "
          "own kernels, not on cuDNN {}: {}",
          description.backward ? "backward" : "forward", problem.head_dim, problem.heads,
          problem.kv_heads, problem.num_sequences, problem.sequence_length, version_text(version_),
          first_line(why));
      return nullptr;
    };
    const size_t least = problem.documents ? kLeastVersionOfDocuments : kLeastVersionOfSequences;
    if (version_ < least) {
      return say(fmt::format("{} need {} or later",
                             problem.documents ? "several documents in a sequence" : "sequences",
                             version_text(least)));
    }
    try {
      auto graph = std::make_unique<fe::graph::Graph>();
      graph->set_sm_version(capability_);
      description.add_to(*graph);
      int64_t needed = 0;
      fe::error_t built = graph->build(handle_, {fe::HeurMode_t::A});
      if (!built.is_good()) return say(built.get_message());
      fe::error_t sized = graph->get_workspace_size(needed);
      if (!sized.is_good()) return say(sized.get_message());
      if (needed > description.workspace_bytes()) {
        return say(fmt::format("it needs {} of memory, and {} was planned", format_bytes(needed),
                               format_bytes(description.workspace_bytes())));
      }
      log::info("the {} of attention runs on cuDNN {}{}, {}, with {} of workspace",
                description.backward ? "backward" : "forward", version_text(version_),
                problem.repeatable || !description.backward
                    ? ""
                    : " and adds in any order (precision.repeatable = false)",
                problem.documents ? "the documents of a sequence one by one"
                                  : "sequences whole, where each is one document",
                format_bytes(needed));
      return graph;
    } catch (const std::exception& error) {
      return say(error.what());
    }
  }

  cudnnHandle_t handle_ = nullptr;
  size_t version_ = 0;
  int capability_ = 0;
  std::map<std::vector<int64_t>, std::unique_ptr<fe::graph::Graph>> plans_;  // null: does not work
};

}  // namespace

std::optional<Problem> start_cudnn(const KernelCall& call, const Problem& wanted, bool backward,
                                   void* scratch) {
  const DType dtype = call.outputs[0].dtype;
  if (!is_for_cudnn(dtype, wanted, backward, plans_for_warpgroups())) return wanted;
  const Problem problem = affordable(wanted, backward);
  if (!are_heads_packable(kCudnnPack, sizeof(bfloat16), problem)) return problem;
  Cudnn* const cudnn = Cudnn::get();
  if (cudnn == nullptr) return problem;
  const CudnnPlacement placement(problem, backward, scratch);
  const DocumentRows& table = placement.table;
  const fe::graph::Graph* plan = cudnn->plan(call, {placement.problem, table, backward});
  if (plan == nullptr) return problem;

  std::unordered_map<int64_t, void*> tensors;
  for (int i = 0; i < kNumOperands; ++i) {
    const Rows& rows = rows_of(placement.problem, static_cast<Operand>(i));
    if (rows.data == nullptr) continue;
    tensors[kOperands + i] = rows.data;
    if (problem.documents) tensors[kOffsets + i] = table.offsets[i];
  }
  if (!problem.documents) {
    if (backward) {
      pack_lse(call, problem, placement.packed_lse);
      tensors[kOperands + kLse] = placement.packed_lse;
    }
    cudnn->execute(call, *plan, tensors, placement.workspace);
    return std::nullopt;
  }
  find_documents(call, problem, table);
  tensors[kQueryLengths] = tensors[kKeyLengths] = table.lengths;
  cudnn->execute(call, *plan, tensors, placement.workspace);
  const int64_t cols = int64_t{problem.kv_heads} * problem.head_dim;
  for (const Operand operand : {kDk, kDv}) {
    const Rows &from = rows_of(placement.problem, operand), &to = rows_of(problem, operand);
    if (from.data != to.data) copy_rows_in_table(call, problem, table, from, to, cols);
  }
  Problem rest = problem;
  rest.elsewhere = table.is_in_table;
  return rest;
}

}  // namespace skein::attention_cuda

#else

#include "skein/base/text/log.h"

namespace skein::attention_cuda {

std::optional<Problem> start_cudnn(const KernelCall&, const Problem& problem, bool, void*) {
  static const bool said = [] {
    log::warn(
        "attention runs on our own kernels: this build found no headers of cuDNN, or of its "
        "frontend (scripts/setup.sh)");
    return true;
  }();
  static_cast<void>(said);
  return problem;
}

}  // namespace skein::attention_cuda

#endif
