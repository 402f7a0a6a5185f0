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

#include <bit>
#include <memory>
#include <vector>

#include "skein/base/text/units.h"
#include "skein/ops/attention/cuda/attention_documents_cuda.h"

namespace skein::attention_cuda {

namespace fe = cudnn_frontend;
using fe::graph::Tensor_attributes;
using Tensor = std::shared_ptr<Tensor_attributes>;

// Names of a graph's tensors: those of operands and of their offsets are these plus its number.
constexpr int64_t kOperands = 1, kOffsets = 101;
constexpr int64_t kQueryLengths = 201, kKeyLengths = 202;

struct Description : CudnnProblem {
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
};

}  // namespace skein::attention_cuda
