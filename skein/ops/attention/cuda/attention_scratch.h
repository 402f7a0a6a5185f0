// What attention takes of a GPU's scratch memory, and where it lies there: delta of backward, then
// what cuDNN needs. Host code of every build: a plan has the same bytes with and without CUDA.
//
// cuDNN    has its memory planned wherever it is preferred, whether or not the library, or its
//          headers, are there
// Errors   wanted_way(): Error{kUsage} for other words than plain, wgmma, cudnn
#pragma once

#include "skein/base/text/units.h"
#include "skein/ops/attention/cuda/attention_problem.h"

namespace skein::attention_cuda {

// Whose kernels SKEIN_ATTENTION in the environment asks for; the fastest ones where it is unset.
enum class Way { kFastest, kPlain, kWarpgroups, kCudnn };
Way wanted_way();

constexpr int kMaxTensorCoreHeadDim = 128;

// The problem of a bound call; addresses may be made up.
Problem bind(const KernelCall& call, bool backward);

// Backward's delta at the front of scratch memory.
int64_t delta_bytes(const Problem& problem);

// Operands that have an offset for each entry.
enum Operand { kQ, kK, kV, kO, kLse, kGrad, kDq, kDk, kDv, kNumOperands };
const Rows& rows_of(const Problem& problem, Operand operand);

// In device memory.
struct DocumentRows {
  int num_entries = 0;
  int32_t* lengths = nullptr;           // [num_entries]; 0: no document
  int32_t* begins = nullptr;            // [num_entries], tokens
  int64_t* offsets[kNumOperands] = {};  // [num_entries + 1] each: of their rows, in elements
  int64_t strides[kNumOperands] = {};   // of operands' rows
  uint8_t* is_in_table = nullptr;       // [tokens]
};

// The table of a problem with `parts` == 1, in `memory`, or without addresses where that is null.
int64_t document_table_bytes(const Problem& problem);
DocumentRows place_document_table(const Problem& problem, void* memory);

// What cuDNN is asked for: documents in a table, or whole sequences.
struct CudnnProblem {
  static constexpr int64_t kRowsAlignment = 64;

  const Problem& problem;
  const DocumentRows& table;
  bool backward;

  int64_t num_entries() const {
    return problem.documents ? table.num_entries : problem.num_sequences;
  }

  // The rows of every sum in the workspace. They are a multiple, as the engine's tensor maps, which
  // must be aligned, follow the sums.
  int64_t workspace_rows() const { return round_up(problem.num_query_rows(), kRowsAlignment); }

  // At least what a plan needs: sums in fp32 of dq and, with shared kv heads, of dk and dv of every
  // query head; delta; what orders the sums of dq; and room for what the library keeps besides.
  int64_t workspace_bytes() const;

  // The same for whole sequences. In order sums are those of products of ds, which is kept in
  // bf16 for all pairs, in blocks of 64 x 128 (the frontend's dP workspace), or, from 9.25 on,
  // and in any order, sums in fp32 of dq. With shared kv heads dk and dv of every query head are
  // kept in bf16.
  int64_t dense_workspace_bytes() const;
};

constexpr int kCudnnPack = 8;  // bf16 of 16 bytes

// Whether cuDNN is preferred, by shapes and strides alone. `warpgroups`: on a GPU whose own kernels
// are those of Hopper, which are faster for some.
bool is_for_cudnn(DType dtype, const Problem& problem, bool backward, bool warpgroups);

// The problem as cuDNN gets it: whole sequences only while the memory for all pairs is affordable.
Problem affordable(Problem problem, bool backward);

// Where everything lies in scratch memory; with null memory it only counts bytes.
//
// With shared kv heads cuDNN keeps dk and dv of every query head, their rows as far apart as those
// of dk and dv, times the query heads of a kv head. Where these are columns of a wider matrix, it
// writes them to rows without gaps first.
struct CudnnPlacement {
  CudnnPlacement(const Problem& wanted, bool backward, void* memory);
  int64_t bytes() const { return used_; }

  Problem problem;  // as cuDNN sees it
  DocumentRows table;
  float* packed_lse = nullptr;
  void* workspace;

 private:
  void* take(int64_t bytes);

  void* memory_;
  int64_t used_ = 0;
};

// Memory for cuDNN; 0 where it is not for this problem.
int64_t cudnn_scratch_bytes(DType dtype, const Problem& problem, bool backward, bool warpgroups);

}  // namespace skein::attention_cuda
