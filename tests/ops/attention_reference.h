// Attention by its definition, in double precision, and checks of an op's kernels against it.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "skein/ops/attention/attention.h"
#include "tests/ops/op_harness.h"

namespace skein::op_test::attention {

struct Config {
  int64_t sequences = 1, sequence_length = 8, heads = 1, kv_heads = 1, head_dim = 4;
  bool causal = true;
  DType dtype = DType::kF32;
  std::vector<int64_t> boundaries = {};   // where documents begin, in every sequence
  std::vector<int64_t> boundary_of = {};  // one boundary of sequence n
  double scale = 0;                       // 0: 1 / sqrt(head_dim)

  int64_t tokens() const { return sequences * sequence_length; }
  double factor() const { return scale > 0 ? scale : 1 / std::sqrt(static_cast<double>(head_dim)); }
  Attrs attrs() const {
    return {{"heads", heads},       {"kv_heads", kv_heads}, {"causal", causal},
            {"head_dim", head_dim}, {"scale", factor()},    {"sequence_length", sequence_length}};
  }
};

inline Tensor starts_of(const Config& config) {
  return op_test::make_tensor(DType::kI32, {config.tokens()}, [&](int64_t t) {
    // Every other sequence is shifted, so that sequences have different documents.
    const int64_t position = t % config.sequence_length, sequence = t / config.sequence_length;
    if (!config.boundary_of.empty()) {
      const int64_t boundary = config.boundary_of[sequence];
      return static_cast<double>(position >= boundary ? boundary : 0);
    }
    int64_t start = 0;
    for (const int64_t boundary : config.boundaries) {
      const int64_t moved = std::min(boundary + sequence % 2, config.sequence_length);
      if (moved <= position) start = std::max(start, moved);
    }
    return static_cast<double>(start);
  });
}

inline Tensors inputs_of(const Config& config) {
  const int64_t q_cols = config.heads * config.head_dim,
                kv_cols = config.kv_heads * config.head_dim;
  return {random_tensor(config.dtype, {config.tokens(), q_cols}, 1),
          random_tensor(config.dtype, {config.tokens(), kv_cols}, 2),
          random_tensor(config.dtype, {config.tokens(), kv_cols}, 3), starts_of(config)};
}

// The naive computation in double precision.
class Reference {
 public:
  Reference(const Config& config, const Tensor& q, const Tensor& k, const Tensor& v,
            const Tensor& starts)
      : config_(config), q_(q), k_(k), v_(v), starts_(starts) {}

  Outputs forward() const {
    const int64_t dim = config_.head_dim;
    Outputs result = {std::vector<double>(q_.values.size()),
                      std::vector<double>(config_.tokens() * config_.heads)};
    for (int64_t row = 0; row < config_.tokens(); ++row) {
      for (int64_t head = 0; head < config_.heads; ++head) {
        const auto [p, lse] = probabilities(row, head);
        result[1][row * config_.heads + head] = lse;
        for (size_t j = 0; j < p.size(); ++j) {
          const double* value = at(v_, first_row(row) + j, kv_head(head));
          double* out = &result[0][(row * config_.heads + head) * dim];
          for (int64_t d = 0; d < dim; ++d) out[d] += p[j] * value[d];
        }
      }
    }
    return result;
  }

  Outputs backward(const Tensor& grad, const Tensor& out) const {
    const int64_t dim = config_.head_dim;
    Outputs result = {std::vector<double>(q_.values.size()), std::vector<double>(k_.values.size()),
                      std::vector<double>(v_.values.size())};
    for (int64_t row = 0; row < config_.tokens(); ++row) {
      for (int64_t head = 0; head < config_.heads; ++head) {
        const std::vector<double> p = probabilities(row, head).first;
        const double* dout = at(grad, row, head);
        const double delta = dot(dout, at(out, row, head));
        double* dq = &result[0][(row * config_.heads + head) * dim];
        for (size_t j = 0; j < p.size(); ++j) {
          const int64_t key = first_row(row) + j;
          const double* value = at(v_, key, kv_head(head));
          const double ds = p[j] * (dot(dout, value) - delta) * config_.factor();
          const int64_t to = (key * config_.kv_heads + kv_head(head)) * dim;
          for (int64_t d = 0; d < dim; ++d) {
            dq[d] += ds * at(k_, key, kv_head(head))[d];
            result[1][to + d] += ds * at(q_, row, head)[d];
            result[2][to + d] += p[j] * dout[d];
          }
        }
      }
    }
    return result;
  }

 private:
  int64_t kv_head(int64_t head) const { return head / (config_.heads / config_.kv_heads); }
  int64_t first_row(int64_t row) const { return row - row % config_.sequence_length; }
  const double* at(const Tensor& tensor, int64_t row, int64_t head) const {
    return &tensor.values[row * tensor.shape.cols() + head * config_.head_dim];
  }
  double dot(const double* a, const double* b) const {
    double sum = 0;
    for (int64_t d = 0; d < config_.head_dim; ++d) sum += a[d] * b[d];
    return sum;
  }
  // The probability of every key of the sequence, 0 if it is not visible; and the log of the sum.
  std::pair<std::vector<double>, double> probabilities(int64_t row, int64_t head) const {
    std::vector<double> p(config_.sequence_length);
    double sum = 0, max = -std::numeric_limits<double>::infinity();
    const auto visible = [&](int64_t key) {
      return starts_[key] == starts_[row] && (!config_.causal || key <= row);
    };
    for (int64_t j = 0; j < config_.sequence_length; ++j) {
      const int64_t key = first_row(row) + j;
      p[j] = visible(key) ? config_.factor() * dot(at(q_, row, head), at(k_, key, kv_head(head)))
                          : -std::numeric_limits<double>::infinity();
      max = std::max(max, p[j]);
    }
    for (double& value : p) sum += value = std::exp(value - max);
    for (double& value : p) value /= sum;
    return {p, max + std::log(sum)};
  }

  const Config& config_;
  const Tensor &q_, &k_, &v_, &starts_;
};

inline double tolerance_of(DType dtype) { return dtype == DType::kBF16 ? 6e-3 : 3e-6; }

// Both read `config` as long as they are used.
inline OpCase forward_case(const Config& config, double tolerance = 0) {
  return {.op = &kAttention,
          .attrs = config.attrs(),
          .inputs = inputs_of(config),
          .reference =
              [&](const Tensors& in) {
                return Reference(config, in[0], in[1], in[2], in[3]).forward();
              },
          .tolerance = tolerance > 0 ? tolerance : tolerance_of(config.dtype)};
}

inline OpCase backward_case(const Config& config) {
  const Tensors in = inputs_of(config);
  const Outputs forward = Reference(config, in[0], in[1], in[2], in[3]).forward();
  const auto tensor = [](DType dtype, const Shape& shape, const std::vector<double>& values) {
    return op_test::make_tensor(dtype, shape, [&](int64_t i) { return values[i]; });
  };
  return {.op = &kAttentionBackward,
          .attrs = config.attrs(),
          .inputs = {random_tensor(config.dtype, in[0].shape, 4), in[0], in[1], in[2],
                     tensor(config.dtype, in[0].shape, forward[0]),
                     tensor(DType::kF32, {config.tokens(), config.heads}, forward[1]), in[3]},
          .reference =
              [&](const Tensors& all) {
                return Reference(config, all[1], all[2], all[3], all[6]).backward(all[0], all[4]);
              },
          .tolerance = config.dtype == DType::kBF16 ? 1e-2 : 1e-5};
}

inline std::string text_of(const Config& config) {
  return fmt::format("S {} heads {}/{} dim {} causal {} documents {}", config.sequence_length,
                     config.heads, config.kv_heads, config.head_dim, config.causal,
                     config.boundaries.size() + 1);
}

inline void check_forward(const Config& config, double tolerance = 0) {
  SCOPED_TRACE(text_of(config));
  const OpCase test = forward_case(config, tolerance);
  op_test::check_forward(test, test.reference(test.inputs));
}

inline void check_backward(const Config& config) {
  SCOPED_TRACE("backward: " + text_of(config));
  const OpCase test = backward_case(config);
  op_test::check_forward(test, test.reference(test.inputs));
}

inline void check_both(const Config& config) {
  check_forward(config);
  // The gradient of the only key is 0, which has no relative error.
  if (config.sequence_length > 1) check_backward(config);
}

}  // namespace skein::op_test::attention
