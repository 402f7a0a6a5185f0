// How a decoder is placed over a mesh: all that tensor, sequence, context and data parallelism need
// to know of it. What moves between ranks follows from this (skein/passes/shard.h).
//
//   tokens, labels, positions   rows over dp and cp
//   attention_start             rows over dp; whole over cp, where every rank looks at all keys
//   parameters                  as their Split says: rows or columns over the tensor axes; rows of
//                               key-value heads over the tensor axis, or over kv alone where tp =
//                               kv x replica
//   tables                      whole
//   the head's input            whole over the tensor axes, since chunks of its rows are taken
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

// Of an input of the plain graph, or of a value that must be placed so; nothing for the rest.
std::function<std::optional<Placements>(const Value&)> decoder_placements(
    const DecoderConfig& config, const Mesh& mesh);

// Throws Error{kUsage} where `mesh` cannot split the model, saying which degrees would do.
void check_decoder_mesh(const DecoderConfig& config, const Mesh& mesh);

}  // namespace skein
