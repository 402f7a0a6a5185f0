// The documents of whole sequences as a batch, for a library that takes sequences of different
// lengths: found on the device, as the host does not know them.
//
// A table has a fixed number of entries. Where there are more documents, the longest have them (all
// of at least some power of two), so that what is left to our own kernels is short.
#pragma once

#include <cstdint>

#include "skein/ops/attention/cuda/attention_cuda.h"

namespace skein::attention_cuda {

// Operands that have an offset for each entry.
enum Operand { kQ, kK, kV, kO, kLse, kGrad, kDq, kDk, kDv, kNumOperands };
const Rows& rows_of(const Problem& problem, Operand operand);

// In device memory.
struct DocumentTable {
  int num_entries = 0;
  int32_t* lengths = nullptr;           // [num_entries]; 0: no document
  int32_t* begins = nullptr;            // [num_entries], tokens
  int64_t* offsets[kNumOperands] = {};  // [num_entries + 1] each: of their rows, in elements
  int64_t strides[kNumOperands] = {};   // of operands' rows
  uint8_t* is_in_table = nullptr;       // [tokens]
};

// The table of a problem with `parts` == 1, in `memory`, or without addresses where that is null.
int64_t document_table_bytes(const Problem& problem);
DocumentTable place_document_table(const Problem& problem, void* memory);

void find_documents(const KernelCall& call, const Problem& problem, const DocumentTable& table);

// Copies the rows of documents in the table, of `cols` bf16 in packs of 8.
void copy_rows_in_table(const KernelCall& call, const Problem& problem, const DocumentTable& table,
                        const Rows& from, const Rows& to, int64_t cols);

}  // namespace skein::attention_cuda
