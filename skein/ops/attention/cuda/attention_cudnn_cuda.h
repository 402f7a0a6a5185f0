// The fast path for bf16: cuDNN computes whole sequences where each is one document
// (Problem::documents is false: by data.document_mask, or as the host sees in a micro-batch);
// otherwise the documents that have an entry in a table (attention_documents_cuda.h), and our own
// kernels those that have none. All give the same bits in every run, but for backward in any order
// (Problem::repeatable).
//
// Needs     libcudnn.so.9, which is loaded at the first run: 9.12 or later for whole sequences,
//           9.25 or later for documents. Without it one warning says so, and our own kernels
//           compute everything. Older ones do not allow entries of no length, and on compute
//           capability 9 their backward is deterministic only with memory for all pairs.
//           Repeatable backward with heads of 64, and of few tiles, is for our own kernels on
//           Hopper, unless SKEIN_ATTENTION=cudnn in the environment; with plain and wgmma there
//           all is.
// Memory    backward of whole sequences: 2 bytes for each of S * S pairs of every head and
//           sequence, whatever the version, as it is planned without the library; where these are
//           more than 4.25 GiB its sequences are documents in the table
// Limits    head_dim a multiple of 16; whole sequences to a rank (`parts` == 1), of more than one
//           token
// Plans     are built at the first run of a shape that does not record, and kept: nodes of one
//           shape share one
#pragma once

#include <cstdint>
#include <optional>

#include "skein/ops/attention/cuda/attention_cuda.h"

namespace skein::attention_cuda {

// Starts cuDNN. Returns what it left out: nothing, the problem with `elsewhere` set, or as it is
// where cuDNN does nothing. `scratch`: of cudnn_scratch_bytes
// (attention_scratch.h).
std::optional<Problem> start_cudnn(const KernelCall& call, const Problem& problem, bool backward,
                                   void* scratch);

}  // namespace skein::attention_cuda
