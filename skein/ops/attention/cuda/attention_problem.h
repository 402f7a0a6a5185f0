// The bound problem of attention on a GPU: sizes, strides, and which rows a block of work has. Host
// code of every build, since what it takes of memory is planned without CUDA, too; kernels call the
// constexpr functions.
#pragma once

#include <cstdint>

#include "skein/ir/kernel.h"

namespace skein::attention_cuda {

constexpr int kBlock = 64;  // queries, and keys, of one block of scores

// Rows of an operand; elements are what the kernel says.
struct Rows {
  void* data = nullptr;
  int64_t stride = 0;
};
struct Range {
  int begin, end;  // positions of a sequence
};

// The argument of every kernel.
struct Problem {
  Rows q, k, v, o, lse;
  Rows grad, dq, dk, dv;   // backward only
  float* delta = nullptr;  // backward only: do . o, [query rows, heads]
  const int32_t* start = nullptr;
  // By row: whether cuDNN computes its document. Null: none. Only with whole sequences, where q and
  // k have the same rows.
  const uint8_t* elsewhere = nullptr;
  int num_sequences = 0, sequence_length = 0;
  int part = 0, parts = 1;                    // of each sequence, the queries of this rank
  int heads = 0, kv_heads = 0, head_dim = 0;  // of this rank
  bool causal = true;
  bool documents = true;   // a sequence may have several; false: `start` is 0 everywhere
  bool repeatable = true;  // false: backward may add in any order
  float scale = 1;

  constexpr int group_size() const { return heads / kv_heads; }
  // The queries of a sequence lie in spans of adjacent positions: the whole sequence, or the two
  // pieces of zigzag order (ops/zigzag).
  constexpr int num_queries() const { return sequence_length / parts; }
  constexpr int num_spans() const { return parts > 1 ? 2 : 1; }
  constexpr int span_length() const { return num_queries() / num_spans(); }
  // Blocks of queries end with their span. Blocks may have another size than kBlock.
  constexpr int span_blocks(int size = kBlock) const { return (span_length() + size - 1) / size; }
  constexpr int span_begin(int span) const {
    return (span == 0 ? part : 2 * parts - 1 - part) * span_length();
  }
  constexpr int num_query_blocks(int size = kBlock) const {
    return num_spans() * span_blocks(size);
  }
  constexpr int num_key_blocks() const { return (sequence_length + kBlock - 1) / kBlock; }
  constexpr int64_t num_query_rows() const { return int64_t{num_sequences} * num_queries(); }

  // The positions of a block of queries, and of one of keys.
  constexpr Range query_range(int block, int size = kBlock) const {
    const int blocks = span_blocks(size), span = block / blocks;
    const int end = span_begin(span) + span_length();
    const int first = span_begin(span) + block % blocks * size;
    return {first, first + size < end ? first + size : end};
  }
  constexpr Range key_range(int block, int size = kBlock) const {
    const int first = block * size;
    return {first, first + size < sequence_length ? first + size : sequence_length};
  }
  // The rows of q, o, lse and their gradients, and of k and v, that hold a position.
  constexpr int64_t query_row(int sequence, int position) const {
    const int span = num_spans() == 1 || position < span_begin(1) ? 0 : 1;
    return int64_t{sequence} * num_queries() + span * span_length() + position - span_begin(span);
  }
  constexpr int64_t key_row(int sequence, int position) const {
    return int64_t{sequence} * sequence_length + position;
  }

  constexpr bool is_elsewhere(int sequence, int position) const {
    return elsewhere != nullptr && elsewhere[key_row(sequence, position)] != 0;
  }
  constexpr const int32_t* starts_of(int sequence) const {
    return start + int64_t{sequence} * sequence_length;
  }
};

}  // namespace skein::attention_cuda
