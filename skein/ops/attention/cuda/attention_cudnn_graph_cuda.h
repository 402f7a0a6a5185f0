// What is asked of cuDNN, as a graph of its frontend: documents in a table, each an entry with
// offsets and lengths of its own (ragged), or whole sequences, each of which is one document
// (dense).
//
// Statistics  dense backward reads them packed as [sequences, heads, sequence_length], as before
//             9.26 it cannot read others (sdpa_backward's check in the frontend 1.32); ours lie
//             [rows, heads]
#pragma once

#define NV_CUDNN_FRONTEND_USE_DYNAMIC_LOADING
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <vector>

#include "skein/base/units.h"
#include "skein/ops/attention/cuda/attention_documents_cuda.h"

namespace skein::attention_cuda {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

constexpr int64_t kAlignment = 256;
constexpr int64_t kRowsAlignment = 64;

// Names of a graph's tensors: those of operands and of their offsets are these plus its number.
constexpr int64_t kOperands = 1, kOffsets = 101;
constexpr int64_t kQueryLengths = 201, kKeyLengths = 202;

struct Description {
  const Problem& problem;
  const DocumentTable& table;
  bool backward;

  // All that a plan depends on.
  std::vector<int64_t> key() const {
    std::vector<int64_t> key = {backward,
                                problem.repeatable,
                                problem.causal,
                                std::bit_cast<int32_t>(problem.scale),
                                problem.heads,
                                problem.kv_heads,
                                problem.head_dim,
                                problem.sequence_length,
                                problem.num_sequences,
                                problem.documents ? table.num_entries : 0};
    key.insert(key.end(), std::begin(table.strides), std::end(table.strides));
    return key;
  }

  int64_t heads_of(Operand operand) const {
    const bool is_kv = operand == kK || operand == kV || operand == kDk || operand == kDv;
    return is_kv ? problem.kv_heads : problem.heads;
  }
  int64_t num_entries() const {
    return problem.documents ? table.num_entries : problem.num_sequences;
  }
  // The library sees an operand as [entries, heads, sequence_length, head_dim], with a document in
  // each entry.
  void describe(fe::graph::Graph& graph, Operand operand, Tensor_attributes& tensor) const {
    const int64_t dim = operand == kLse ? 1 : problem.head_dim, stride = table.strides[operand];
    const int64_t length = problem.sequence_length;
    tensor.set_uid(kOperands + operand)
        .set_dim({num_entries(), heads_of(operand), length, dim})
        .set_stride({length * stride, dim, stride, 1});
    if (operand == kLse) tensor.set_data_type(fe::DataType_t::FLOAT);
    if (!problem.documents) {
      if (backward && operand == kLse) {
        tensor.set_stride({problem.heads * length, length, 1, 1});
      }
      return;
    }
    tensor.set_ragged_offset(graph.tensor(Tensor_attributes()
                                              .set_uid(kOffsets + operand)
                                              .set_dim({table.num_entries + 1, 1, 1, 1})
                                              .set_stride({1, 1, 1, 1})
                                              .set_data_type(fe::DataType_t::INT64)));
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
    attributes.set_attn_scale(problem.scale);
    if (problem.documents) {
      attributes.set_padding_mask(true)
          .set_seq_len_q(lengths(graph, kQueryLengths))
          .set_seq_len_kv(lengths(graph, kKeyLengths));
    }
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
      wanted.set_deterministic_algorithm(problem.repeatable);
      if (problem.documents) {
        wanted.set_max_total_seq_len_q(workspace_rows()).set_max_total_seq_len_kv(workspace_rows());
      }
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

  // The same for whole sequences. In order sums are those of products of ds, which is kept in
  // bf16 for all pairs, in blocks of 64 x 128 (the frontend's dP workspace), or, from 9.25 on,
  // and in any order, sums in fp32 of dq. With shared kv heads dk and dv of every query head are
  // kept in bf16.
  int64_t dense_workspace_bytes() const {
    constexpr int64_t kSlack = int64_t{1} << 20;
    if (!backward) return kSlack;
    const int64_t length = problem.sequence_length, dim = problem.head_dim;
    const int64_t pairs = problem.repeatable ? 2 * round_up(length, 64) * round_up(length, 128) : 0;
    const int64_t sums = 4 * round_up(length, 128) * dim + 8 * problem.num_key_blocks();
    int64_t bytes = std::max(pairs, sums) + 4 * length;
    if (problem.group_size() > 1) bytes += 2 * 2 * length * dim;
    return kSlack + bytes * problem.num_sequences * problem.heads;
  }
};

}  // namespace skein::attention_cuda
