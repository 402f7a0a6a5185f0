#include "skein/ops/attention/cuda/attention_documents_cuda.h"
#include "skein/ops/cuda/device_cuda.h"
#include "skein/ops/cuda/launch_cuda.h"

namespace skein::attention_cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kClasses = 32;  // of lengths, by their number of bits

struct TableArgs {
  const int32_t* start;
  int sequence_length, num_tokens;
  DocumentRows table;
};

__device__ int class_of(int length) { return kClasses - __clz(length); }

// The adjacent tokens that one thread of the only thread block has, and the documents that begin
// there.
class ThreadTokens {
 public:
  __device__ explicit ThreadTokens(const TableArgs& args) : args_(args) {
    const int64_t size = (int64_t{args.num_tokens} + kThreads - 1) / kThreads;
    const int64_t begin = size * threadIdx.x, end = begin + size;
    begin_ = static_cast<int>(begin < args.num_tokens ? begin : args.num_tokens);
    end_ = static_cast<int>(end < args.num_tokens ? end : args.num_tokens);
  }

  // num_tokens where none begins among them.
  __device__ int first_document() const {
    int token = begin_;
    while (token < end_ && !begins(token)) ++token;
    return token < end_ ? token : args_.num_tokens;
  }
  // Calls function(begin, length). `after` is where the first document of a later thread begins.
  template <typename Function>
  __device__ void for_each(int after, const Function& function) const {
    for (int document = first_document(); document < end_;) {
      int next = document + 1;
      while (next < end_ && !begins(next)) ++next;
      function(document, (next < end_ ? next : after) - document);
      document = next;
    }
  }

 private:
  __device__ bool begins(int token) const {
    return token % args_.sequence_length == 0 || args_.start[token] != args_.start[token - 1];
  }

  const TableArgs& args_;
  int begin_, end_;
};

// values[i] becomes op over values[i], values[i + step], values[i + 2 step], ... of a block.
template <typename Op>
__device__ void scan(int (&values)[kThreads], int step, Op op) {
  const int i = static_cast<int>(threadIdx.x);
  for (int distance = 1; distance < kThreads; distance *= 2) {
    __syncthreads();
    const int other = i + step * distance;
    const int value = other >= 0 && other < kThreads ? op(values[i], values[other]) : values[i];
    __syncthreads();
    values[i] = value;
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads) fill_table(TableArgs args) {
  cuda::wait_for_previous_kernel();
  __shared__ int values[kThreads];
  __shared__ int num_of_class[kClasses];
  const DocumentRows& table = args.table;
  const int thread = static_cast<int>(threadIdx.x);
  const ThreadTokens own(args);

  // Where the documents of later threads begin.
  values[thread] = own.first_document();
  if (thread < kClasses) num_of_class[thread] = 0;
  scan(values, 1, [](int a, int b) { return a < b ? a : b; });
  const int after = thread + 1 < kThreads ? values[thread + 1] : args.num_tokens;

  // The least class whose documents, with all longer ones, have an entry each. A sequence has room
  // for one document of the highest class: they always fit.
  own.for_each(after, [&](int, int length) { atomicAdd(&num_of_class[class_of(length)], 1); });
  __syncthreads();
  int least = kClasses, num_documents = 0;
  while (least > 0 && num_documents + num_of_class[least - 1] <= table.num_entries) {
    num_documents += num_of_class[--least];
  }

  // Entries in the order of the documents, then empty ones.
  int mine = 0;
  own.for_each(after, [&](int, int length) { mine += class_of(length) >= least ? 1 : 0; });
  values[thread] = mine;
  scan(values, -1, [](int a, int b) { return a + b; });
  int entry = values[thread] - mine;
  const auto set_entry = [&](int index, int begin, int length) {
    if (index < table.num_entries) {
      table.lengths[index] = length;
      table.begins[index] = begin;
    }
    for (int i = 0; i < kNumOperands; ++i) table.offsets[i][index] = begin * table.strides[i];
  };
  own.for_each(after, [&](int begin, int length) {
    if (class_of(length) >= least) set_entry(entry++, begin, length);
  });
  for (int i = num_documents + thread; i <= table.num_entries; i += kThreads) {
    set_entry(i, args.num_tokens, 0);
  }

  for (int token = thread; token < args.num_tokens; token += kThreads) table.is_in_table[token] = 0;
  __syncthreads();
  for (int i = 0; i < num_documents; ++i) {
    const int begin = table.begins[i], length = table.lengths[i];
    for (int token = thread; token < length; token += kThreads) {
      table.is_in_table[begin + token] = 1;
    }
  }
}

constexpr int kPack = 8;  // bf16
constexpr int kCopyThreads = 128;

// A thread copies a pack; blockIdx.y steps over the rows.
__global__ void __launch_bounds__(kCopyThreads)
    copy_rows(const uint8_t* is_copied, Rows from, Rows to, int64_t rows, int64_t cols) {
  cuda::wait_for_previous_kernel();
  const int64_t col = (int64_t{blockIdx.x} * kCopyThreads + threadIdx.x) * kPack;
  if (col >= cols) return;
  for (int64_t row = blockIdx.y; row < rows; row += gridDim.y) {
    if (is_copied[row] == 0) continue;
    cuda::store_pack(row_at<uint16_t>(to, row, col),
                     cuda::load_pack<kPack>(row_at<const uint16_t>(from, row, col)));
  }
}

int64_t num_tokens(const Problem& problem) {
  return int64_t{problem.num_sequences} * problem.sequence_length;
}

}  // namespace

void find_documents(const KernelCall& call, const Problem& problem, const DocumentRows& table) {
  const TableArgs args = {problem.start, problem.sequence_length,
                          static_cast<int>(num_tokens(problem)), table};
  cuda::launch(call, 1, kThreads, fill_table, args);
}

void copy_rows_in_table(const KernelCall& call, const Problem& problem, const DocumentRows& table,
                        const Rows& from, const Rows& to, int64_t cols) {
  const int64_t rows = num_tokens(problem);
  const dim3 grid(cuda::blocks_for(cols, kCopyThreads * kPack),
                  static_cast<unsigned>(rows < 65535 ? rows : 65535));
  cuda::launch(call, grid, kCopyThreads, copy_rows, table.is_in_table, from, to, rows, cols);
}

}  // namespace skein::attention_cuda
