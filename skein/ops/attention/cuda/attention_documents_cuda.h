// The documents of whole sequences as a batch, for a library that takes sequences of different
// lengths: found on the device, as the host does not know them.
//
// A table has a fixed number of entries. Where there are more documents, the longest have them (all
// of at least some power of two), so that what is left to our own kernels is short.
#pragma once

#include <cstdint>

#include "skein/ops/attention/cuda/attention_cuda.h"

namespace skein::attention_cuda {

void find_documents(const KernelCall& call, const Problem& problem, const DocumentRows& table);

// Copies the rows of documents in the table, of `cols` bf16 in packs of 8.
void copy_rows_in_table(const KernelCall& call, const Problem& problem, const DocumentRows& table,
                        const Rows& from, const Rows& to, int64_t cols);

}  // namespace skein::attention_cuda
