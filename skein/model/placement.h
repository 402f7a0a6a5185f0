// How a decoder is placed on a mesh for tensor, sequence, context and data parallelism. The
// collectives follow from these placements (skein/passes/parallel/shard.h).
//
//   tokens, labels, positions   rows over dp and cp
//   attention_start             rows over dp; whole over cp, where every rank attends to all keys
//   parameters                  by their Split: rows or columns over the tensor axes; rows of
//                               key-value heads over tp, or over kv alone where tp = kv x replica
//   tables                      whole
//   the head's input            rows over dp and cp; whole over the tensor axes, since the loss
//                               takes blocks of its rows
//
// Tensor axes  `tp`, or `kv` and `replica` where key-value heads are replicated
// Source       Shoeybi et al., arXiv:1909.08053, section 3
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "skein/model/decoder.h"

namespace skein {

std::vector<std::string> tensor_axes(const Mesh& mesh);

// The placement of an input of the plain graph, or of a value that needs a fixed one; nullopt for
// all others.
std::function<std::optional<Placements>(const Value&)> decoder_placements(
    const DecoderConfig& config, const Mesh& mesh);

// The number of ranks that split the rows of the embedding and the head.
int64_t vocabulary_ranks(const Mesh& mesh);

// Lines for people about what is computed for rows of that length on that mesh: factors that a
// rotary embedding chose by the length, rows that pad the vocabulary.
std::vector<std::string> decoder_notes(const DecoderConfig& config, const Mesh& mesh,
                                       int64_t sequence_length);

// Throws Error{kUsage} where `mesh` cannot split the model, naming the degrees that can.
// `key` asked for it.
void check_decoder_mesh(const DecoderConfig& config, const Mesh& mesh,
                        std::string_view key = "parallel.tensor");

}  // namespace skein
