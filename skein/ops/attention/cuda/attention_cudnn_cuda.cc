#include "skein/ops/attention/cuda/attention_cudnn_cuda.h"

#ifdef SKEIN_CUDNN

#include <dlfcn.h>

#include <bit>
#include <cstdlib>
#include <exception>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include "skein/base/error.h"
#include "skein/base/log.h"
#include "skein/base/units.h"
#include "skein/ops/attention/cuda/attention_documents_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/cuda/library_cuda.h"

namespace cudnn_frontend {
void* cudnn_dlhandle = nullptr;  // the frontend's; it takes cuDNN's functions from here
}

namespace skein::attention_cuda {
namespace {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

constexpr size_t kLeastVersion = 92500;
constexpr int64_t kHeadDimMultiple = 16;
constexpr int kPack = 8;  // elements of 16 bytes
constexpr int64_t kAlignment = 256;
constexpr int64_t kRowsAlignment = 64;

// Names of a graph's tensors: those of operands and of their offsets are these plus its number.
constexpr int64_t kOperands = 1, kOffsets = 101;
constexpr int64_t kQueryLengths = 201, kKeyLengths = 202;

int64_t round_up(int64_t value, int64_t multiple = kAlignment) {
  return (value + multiple - 1) / multiple * multiple;
}

// ---- what is asked of cuDNN

struct Description {
  const Problem& problem;
  const DocumentTable& table;
  bool backward;

  // All that a plan depends on.
  std::vector<int64_t> key() const {
    std::vector<int64_t> key = {backward,
                                problem.causal,
                                std::bit_cast<int32_t>(problem.scale),
                                problem.heads,
                                problem.kv_heads,
                                problem.head_dim,
                                problem.sequence_length,
                                problem.num_sequences,
                                table.num_entries};
    key.insert(key.end(), std::begin(table.strides), std::end(table.strides));
    return key;
  }

  int64_t heads_of(Operand operand) const {
    const bool is_kv = operand == kK || operand == kV || operand == kDk || operand == kDv;
    return is_kv ? problem.kv_heads : problem.heads;
  }
  // The library sees an operand as [entries, heads, sequence_length, head_dim], with a document in
  // each entry.
  void describe(fe::graph::Graph& graph, Operand operand, Tensor_attributes& tensor) const {
    const int64_t dim = operand == kLse ? 1 : problem.head_dim, stride = table.strides[operand];
    const int64_t length = problem.sequence_length;
    tensor.set_uid(kOperands + operand)
        .set_dim({table.num_entries, heads_of(operand), length, dim})
        .set_stride({length * stride, dim, stride, 1})
        .set_ragged_offset(graph.tensor(Tensor_attributes()
                                            .set_uid(kOffsets + operand)
                                            .set_dim({table.num_entries + 1, 1, 1, 1})
                                            .set_stride({1, 1, 1, 1})
                                            .set_data_type(fe::DataType_t::INT64)));
    if (operand == kLse) tensor.set_data_type(fe::DataType_t::FLOAT);
  }
  Tensor input(fe::graph::Graph& graph, Operand operand) const {
    Tensor_attributes tensor;
    describe(graph, operand, tensor);
    return graph.tensor(tensor);
  }
  void output(fe::graph::Graph& graph, Operand operand, const Tensor& tensor) const {
    describe(graph, operand, tensor->set_output(true));
  }
  Tensor lengths(fe::graph::Graph& graph, int64_t uid) const {
    return graph.tensor(Tensor_attributes()
                            .set_uid(uid)
                            .set_dim({table.num_entries, 1, 1, 1})
                            .set_stride({1, 1, 1, 1})
                            .set_data_type(fe::DataType_t::INT32));
  }

  template <typename Attributes>
  Attributes attributes(fe::graph::Graph& graph) const {
    Attributes attributes;
    attributes.set_attn_scale(problem.scale)
        .set_padding_mask(true)
        .set_seq_len_q(lengths(graph, kQueryLengths))
        .set_seq_len_kv(lengths(graph, kKeyLengths));
    if (problem.causal) {
      attributes.set_diagonal_alignment(fe::DiagonalAlignment_t::TOP_LEFT)
          .set_diagonal_band_right_bound(0);
    }
    return attributes;
  }
  void add_to(fe::graph::Graph& graph) const {
    graph.set_io_data_type(fe::DataType_t::BFLOAT16)
        .set_intermediate_data_type(fe::DataType_t::FLOAT)
        .set_compute_data_type(fe::DataType_t::FLOAT);
    const Tensor q = input(graph, kQ), k = input(graph, kK), v = input(graph, kV);
    if (backward) {
      auto wanted = attributes<fe::graph::SDPA_backward_attributes>(graph);
      wanted.set_deterministic_algorithm(true)
          .set_max_total_seq_len_q(workspace_rows())
          .set_max_total_seq_len_kv(workspace_rows());
      const Tensor o = input(graph, kO), grad = input(graph, kGrad), lse = input(graph, kLse);
      const auto [dq, dk, dv] = graph.sdpa_backward(q, k, v, o, grad, lse, wanted);
      output(graph, kDq, dq);
      output(graph, kDk, dk);
      output(graph, kDv, dv);
    } else {
      auto wanted = attributes<fe::graph::SDPA_attributes>(graph);
      wanted.set_generate_stats(true);
      const auto [o, lse] = graph.sdpa(q, k, v, wanted);
      output(graph, kO, o);
      output(graph, kLse, lse);
    }
  }

  // The rows of every sum in the workspace. They are a multiple, as the engine's tensor maps, which
  // must be aligned, follow the sums.
  int64_t workspace_rows() const { return round_up(problem.num_query_rows(), kRowsAlignment); }

  // At least what a plan needs: sums in fp32 of dq and, with shared kv heads, of dk and dv of every
  // query head; delta; what orders the sums of dq; and room for what the library keeps besides.
  int64_t workspace_bytes() const {
    const int64_t entries = table.num_entries, rows = workspace_rows();
    int64_t bytes = (int64_t{4} << 20) + entries * 1024;
    if (!backward) return bytes;
    int64_t elements = table.strides[kDq] + table.strides[kLse];
    if (problem.group_size() > 1) {
      elements += problem.group_size() * (table.strides[kDk] + table.strides[kDv]);
    }
    bytes += rows * elements * static_cast<int64_t>(sizeof(float));
    return bytes + entries * problem.heads * problem.num_key_blocks() * 8;
  }
};

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
    if (version_ < kLeastVersion) {
      fail(ErrorCode::kUnsupported, "cuDNN {} is older than {}", version_text(version_),
           version_text(kLeastVersion));
    }
    int device = 0, major = 0, minor = 0;
    cuda::check(cudaGetDevice(&device), "cudaGetDevice");
    cuda::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device),
                "cudaDeviceGetAttribute");
    cuda::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device),
                "cudaDeviceGetAttribute");
    capability_ = 10 * major + minor;
    const cudnnStatus_t status = fe::detail::create_handle(&handle_);
    if (status != CUDNN_STATUS_SUCCESS) {
      fail(ErrorCode::kUnsupported, "cudnnCreate: {}", fe::detail::get_error_string(status));
    }
  }

  std::unique_ptr<fe::graph::Graph> build(const Description& description) {
    const auto say = [&](const std::string& why) {
      const Problem& problem = description.problem;
      log::warn(
          "the {} of attention (head_dim {}, {} and {} heads, {} sequences of {}) runs on our "
          "own kernels, not on cuDNN {}: {}",
          description.backward ? "backward" : "forward", problem.head_dim, problem.heads,
          problem.kv_heads, problem.num_sequences, problem.sequence_length, version_text(version_),
          first_line(why));
      return nullptr;
    };
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

bool is_wanted() {
  static const char* const wanted = std::getenv("SKEIN_ATTENTION");
  return wanted == nullptr || (std::string(wanted) != "plain" && std::string(wanted) != "wgmma");
}

// Decides by shapes and strides. Sequences of one token are not for cuDNN, which has no backward
// for them, and of which 9.26 and 9.27 leave out part of lse.
bool is_for_cudnn(DType dtype, const Problem& problem) {
  bool aligned = true;
  for (int i = 0; i < kNumOperands; ++i) {
    const auto operand = static_cast<Operand>(i);
    aligned = aligned && (operand == kLse || rows_of(problem, operand).stride % kPack == 0);
  }
  return is_wanted() && dtype == DType::kBF16 && problem.parts == 1 && aligned &&
         problem.sequence_length > 1 && problem.head_dim % kHeadDimMultiple == 0;
}

// Where everything lies in scratch memory; with null memory it only counts bytes.
//
// With shared kv heads cuDNN keeps dk and dv of every query head, their rows as far apart as those
// of dk and dv, times the query heads of a kv head. Where these are columns of a wider matrix, it
// writes them to rows without gaps first.
struct Placement {
  Placement(const Problem& wanted, bool backward, void* memory) : problem(wanted), memory_(memory) {
    const int64_t cols = int64_t{problem.kv_heads} * problem.head_dim;
    const int64_t bytes = problem.num_query_rows() * cols * size_of(DType::kBF16);
    for (Rows* rows : {&problem.dk, &problem.dv}) {
      if (backward && problem.group_size() > 1 && rows->stride > cols) *rows = {take(bytes), cols};
    }
    table = place_document_table(problem, take(document_table_bytes(problem)));
    workspace = take(Description{problem, table, backward}.workspace_bytes());
  }
  int64_t bytes() const { return used_; }

  Problem problem;  // as cuDNN sees it
  DocumentTable table;
  void* workspace;

 private:
  void* take(int64_t bytes) {
    const int64_t at = round_up(reinterpret_cast<int64_t>(memory_)) + used_;
    used_ += round_up(bytes);
    return memory_ == nullptr ? nullptr : reinterpret_cast<void*>(at);
  }

  void* memory_;
  int64_t used_ = 0;
};

}  // namespace

int64_t cudnn_scratch_bytes(DType dtype, const Problem& problem, bool backward) {
  if (!is_for_cudnn(dtype, problem)) return 0;
  return Placement(problem, backward, nullptr).bytes() + kAlignment;
}

Problem start_cudnn(const KernelCall& call, const Problem& problem, bool backward, void* scratch) {
  if (!is_for_cudnn(call.outputs[0].dtype, problem)) return problem;
  if (!are_heads_packable(kPack, sizeof(bfloat16), problem)) return problem;
  Cudnn* const cudnn = Cudnn::get();
  if (cudnn == nullptr) return problem;
  const Placement placement(problem, backward, scratch);
  const DocumentTable& table = placement.table;
  const fe::graph::Graph* plan = cudnn->plan(call, {placement.problem, table, backward});
  if (plan == nullptr) return problem;

  find_documents(call, problem, table);
  std::unordered_map<int64_t, void*> tensors = {{kQueryLengths, table.lengths},
                                                {kKeyLengths, table.lengths}};
  for (int i = 0; i < kNumOperands; ++i) {
    const Rows& rows = rows_of(placement.problem, static_cast<Operand>(i));
    if (rows.data == nullptr) continue;
    tensors[kOperands + i] = rows.data;
    tensors[kOffsets + i] = table.offsets[i];
  }
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

#include "skein/base/log.h"

namespace skein::attention_cuda {

int64_t cudnn_scratch_bytes(DType, const Problem&, bool) { return 0; }

Problem start_cudnn(const KernelCall&, const Problem& problem, bool, void*) {
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
