#include "skein/ops/attention/cuda/attention_scratch.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "skein/base/error.h"
#include "skein/ops/cuda_rules.h"

namespace skein::attention_cuda {
namespace {

constexpr int kTokensPerEntry = 512;  // entries cost time, even empty ones
constexpr int64_t kTableAlignment = 16;
constexpr int64_t kCudnnAlignment = 256;
constexpr int64_t kHeadDimMultiple = 16;

Rows rows_of(const View& view) { return {view.data, view.row_stride}; }

// Gives out parts of memory; with a null base it only counts.
class Memory {
 public:
  explicit Memory(void* base) : base_(static_cast<char*>(base)) {}
  template <typename T>
  T* take(int64_t count) {
    T* part = base_ == nullptr ? nullptr : reinterpret_cast<T*>(base_ + used_);
    const int64_t bytes = count * static_cast<int64_t>(sizeof(T));
    used_ += (bytes + kTableAlignment - 1) / kTableAlignment * kTableAlignment;
    return part;
  }
  int64_t used() const { return used_; }

 private:
  char* base_;
  int64_t used_ = 0;
};

int64_t num_tokens(const Problem& problem) {
  return int64_t{problem.num_sequences} * problem.sequence_length;
}

DocumentRows place(const Problem& problem, Memory& memory) {
  DocumentRows table;
  table.num_entries =
      problem.num_sequences + static_cast<int>(num_tokens(problem) / kTokensPerEntry);
  table.lengths = memory.take<int32_t>(table.num_entries);
  table.begins = memory.take<int32_t>(table.num_entries);
  for (int i = 0; i < kNumOperands; ++i) {
    table.strides[i] = rows_of(problem, static_cast<Operand>(i)).stride;
    table.offsets[i] = memory.take<int64_t>(table.num_entries + 1);
  }
  table.is_in_table = memory.take<uint8_t>(num_tokens(problem));
  return table;
}

// On Hopper our backward is faster for heads of 64, and of few tiles of 128 queries; forward, and
// the rest of backward, are cuDNN's (docs/gpu.md).
constexpr int64_t kFastHead = 64, kFewTiles = 256;

bool is_preferred(DType dtype, const Problem& problem, bool backward, bool warpgroups) {
  if (wanted_way() != Way::kFastest) return wanted_way() == Way::kCudnn;
  if (!backward || !problem.repeatable) return true;
  const int64_t tiles =
      int64_t{problem.num_sequences} * problem.heads * problem.num_query_blocks(2 * kBlock);
  const bool ours = problem.head_dim == kFastHead || tiles <= kFewTiles;
  return !ours || !warpgroups || dtype != DType::kBF16 || problem.head_dim > kMaxTensorCoreHeadDim;
}

// Whole sequences only while the memory for all pairs is affordable: it grows with the square of
// their length. Beyond, each is one document in the table.
constexpr int64_t kMaxPairsBytes = (int64_t{4} << 30) + (int64_t{256} << 20);

}  // namespace

Way wanted_way() {
  static const Way way = [] {
    const char* const variable = std::getenv("SKEIN_ATTENTION");
    const std::string_view word = variable == nullptr ? "" : variable;
    if (word.empty()) return Way::kFastest;
    if (word == "plain") return Way::kPlain;
    if (word == "wgmma") return Way::kWarpgroups;
    if (word == "cudnn") return Way::kCudnn;
    fail(ErrorCode::kUsage,
         "SKEIN_ATTENTION is '{}': expected plain, wgmma or cudnn, or to be unset", word);
  }();
  return way;
}

Problem bind(const KernelCall& call, bool backward) {
  const int first = backward ? 1 : 0;
  const View &q = call.inputs[first], &k = call.inputs[first + 1];
  Problem problem;
  problem.q = rows_of(q);
  problem.k = rows_of(k);
  problem.v = rows_of(call.inputs[first + 2]);
  problem.start = call.inputs[backward ? 6 : 3].as<const int32_t>();
  if (backward) {
    problem.grad = rows_of(call.inputs[0]);
    problem.o = rows_of(call.inputs[4]);
    problem.lse = rows_of(call.inputs[5]);
    problem.dq = rows_of(call.outputs[0]);
    problem.dk = rows_of(call.outputs[1]);
    problem.dv = rows_of(call.outputs[2]);
    problem.delta = static_cast<float*>(call.scratch);
  } else {
    problem.o = rows_of(call.outputs[0]);
    problem.lse = rows_of(call.outputs[1]);
  }
  const int64_t head_dim = call.attrs.integer("head_dim");
  const int64_t sequence_length = call.attrs.integer("sequence_length");
  problem.head_dim = static_cast<int>(head_dim);
  problem.sequence_length = static_cast<int>(sequence_length);
  problem.num_sequences = static_cast<int>(k.rows() / sequence_length);
  if (call.attrs.has("part")) {
    problem.part = static_cast<int>(call.attrs.integer("part"));
    problem.parts = static_cast<int>(call.attrs.integer("parts"));
  }
  problem.heads = static_cast<int>(q.cols() / head_dim);
  problem.kv_heads = static_cast<int>(k.cols() / head_dim);
  problem.causal = call.attrs.flag("causal");
  problem.documents = !call.attrs.has("documents") || call.attrs.flag("documents");
  if (call.facts != nullptr && call.facts->one_document_each) problem.documents = false;
  problem.repeatable = !call.attrs.has("repeatable") || call.attrs.flag("repeatable");
  problem.scale = static_cast<float>(call.attrs.real("scale"));
  return problem;
}

int64_t delta_bytes(const Problem& problem) {
  const int64_t bytes =
      problem.num_query_rows() * problem.heads * static_cast<int64_t>(sizeof(float));
  return (bytes + 63) / 64 * 64;
}

const Rows& rows_of(const Problem& problem, Operand operand) {
  const Rows* rows[kNumOperands] = {};
  rows[kQ] = &problem.q;
  rows[kK] = &problem.k;
  rows[kV] = &problem.v;
  rows[kO] = &problem.o;
  rows[kLse] = &problem.lse;
  rows[kGrad] = &problem.grad;
  rows[kDq] = &problem.dq;
  rows[kDk] = &problem.dk;
  rows[kDv] = &problem.dv;
  return *rows[operand];
}

int64_t document_table_bytes(const Problem& problem) {
  Memory memory(nullptr);
  place(problem, memory);
  return memory.used();
}

DocumentRows place_document_table(const Problem& problem, void* memory) {
  Memory parts(memory);
  return place(problem, parts);
}

int64_t CudnnProblem::workspace_bytes() const {
  if (!problem.documents) return dense_workspace_bytes();
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

int64_t CudnnProblem::dense_workspace_bytes() const {
  constexpr int64_t kSlack = int64_t{1} << 20;
  if (!backward) return kSlack;
  const int64_t length = problem.sequence_length, dim = problem.head_dim;
  const int64_t pairs = problem.repeatable ? 2 * round_up(length, 64) * round_up(length, 128) : 0;
  const int64_t sums = 4 * round_up(length, 128) * dim + 8 * problem.num_key_blocks();
  int64_t bytes = std::max(pairs, sums) + 4 * length;
  if (problem.group_size() > 1) bytes += 2 * 2 * length * dim;
  return kSlack + bytes * problem.num_sequences * problem.heads;
}

// Decides by shapes and strides. Sequences of one token are not for cuDNN, which has no backward
// for them, and of which 9.26 and 9.27 leave out part of lse.
bool is_for_cudnn(DType dtype, const Problem& problem, bool backward, bool warpgroups) {
  bool aligned = true;
  for (int i = 0; i < kNumOperands; ++i) {
    const auto operand = static_cast<Operand>(i);
    aligned = aligned && (operand == kLse || rows_of(problem, operand).stride % kCudnnPack == 0);
  }
  return is_preferred(dtype, problem, backward, warpgroups) && dtype == DType::kBF16 &&
         problem.parts == 1 && aligned && problem.sequence_length > 1 &&
         problem.head_dim % kHeadDimMultiple == 0;
}

Problem affordable(Problem problem, bool backward) {
  const CudnnProblem whole{problem, {}, backward};
  problem.documents |= whole.dense_workspace_bytes() > kMaxPairsBytes;
  return problem;
}

CudnnPlacement::CudnnPlacement(const Problem& wanted, bool backward, void* memory)
    : problem(wanted), memory_(memory) {
  const int64_t cols = int64_t{problem.kv_heads} * problem.head_dim;
  const int64_t bytes = problem.num_query_rows() * cols * size_of(DType::kBF16);
  for (Rows* rows : {&problem.dk, &problem.dv}) {
    if (problem.documents && backward && problem.group_size() > 1 && rows->stride > cols)
      *rows = {take(bytes), cols};
  }
  if (problem.documents) {
    table = place_document_table(problem, take(document_table_bytes(problem)));
  } else {
    table = place_document_table(problem, nullptr);  // for its strides
    if (backward) {
      packed_lse = static_cast<float*>(
          take(problem.num_query_rows() * problem.heads * static_cast<int64_t>(sizeof(float))));
    }
  }
  workspace = take(CudnnProblem{problem, table, backward}.workspace_bytes());
}

void* CudnnPlacement::take(int64_t bytes) {
  const int64_t at = round_up(reinterpret_cast<int64_t>(memory_), kCudnnAlignment) + used_;
  used_ += round_up(bytes, kCudnnAlignment);
  return memory_ == nullptr ? nullptr : reinterpret_cast<void*>(at);
}

int64_t cudnn_scratch_bytes(DType dtype, const Problem& problem, bool backward, bool warpgroups) {
  if (!is_for_cudnn(dtype, problem, backward, warpgroups)) return 0;
  return CudnnPlacement(affordable(problem, backward), backward, nullptr).bytes() + kCudnnAlignment;
}

namespace {

// Enough for sequences that are one document each, too, whatever data comes.
template <bool warpgroups>
int64_t cudnn_bytes(const KernelCall& call, Problem problem, bool backward) {
  const DType dtype = call.outputs[0].dtype;
  const int64_t bytes = cudnn_scratch_bytes(dtype, problem, backward, warpgroups);
  problem.documents = false;
  return std::max(bytes, cudnn_scratch_bytes(dtype, problem, backward, warpgroups));
}
template <bool warpgroups>
int64_t forward_scratch_bytes(const KernelCall& call) {
  return cudnn_bytes<warpgroups>(call, bind(call, false), false);
}
template <bool warpgroups>
int64_t backward_scratch_bytes(const KernelCall& call) {
  const Problem problem = bind(call, true);
  return delta_bytes(problem) + cudnn_bytes<warpgroups>(call, problem, true);
}

template <bool warpgroups>
void add_rules(KernelTable& table) {
  table["attention"].scratch_bytes = forward_scratch_bytes<warpgroups>;
  table["attention_backward"].scratch_bytes = backward_scratch_bytes<warpgroups>;
}

}  // namespace
}  // namespace skein::attention_cuda

namespace skein {

void add_attention_cuda_rules(KernelTable& table, const CudaRuleOptions& options) {
  options.warpgroups ? attention_cuda::add_rules<true>(table)
                     : attention_cuda::add_rules<false>(table);
}

}  // namespace skein
