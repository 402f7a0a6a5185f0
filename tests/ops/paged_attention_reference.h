// Calls of paged attention, and their reference in double precision.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "skein/ops/paged_attention/paged_attention.h"
#include "tests/ops/op_harness.h"

namespace skein::op_test::paged {

struct Config {
  DType dtype = DType::kF32;
  PagedAttentionAttrs attrs;
  int64_t num_pages = 0;                    // N
  std::vector<std::vector<int64_t>> pages;  // of each sequence, -1 behind the last

  static Config of(DType dtype, int64_t heads, int64_t kv_heads, int64_t head_dim,
                   int64_t page_size) {
    const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
    return {dtype, {heads, kv_heads, head_dim, page_size, scale}, 0, {}};
  }
  // Pages for `sequences` of `positions` each, in an order that `stream` draws, among as many
  // that nobody has.
  void draw_pages(int64_t sequences, int64_t positions, uint32_t stream) {
    const int64_t each = (positions + attrs.page_size - 1) / attrs.page_size;
    num_pages = 2 * sequences * each;
    std::vector<int64_t> order(num_pages);
    for (int64_t i = 0; i < num_pages; ++i) order[i] = i;
    const Philox random(3, RandomPurpose::kDataOrder, stream, 0);
    for (int64_t i = num_pages - 1; i > 0; --i)
      std::swap(order[i], order[random.word(i) % (i + 1)]);
    pages.assign(sequences, {});
    for (int64_t i = 0; i < sequences * each; ++i) pages[i / each].push_back(order[i]);
  }
  int64_t q_cols() const { return attrs.heads * attrs.head_dim; }
  int64_t kv_cols() const { return attrs.kv_heads * attrs.head_dim; }
  Shape cache_shape() const { return {num_pages, kv_cols() * attrs.page_size}; }
  Tensor pages_tensor() const {
    const auto columns = static_cast<int64_t>(pages.at(0).size());
    return make_tensor(DType::kI32, {static_cast<int64_t>(pages.size()), columns},
                       [&](int64_t i) { return pages[i / columns].at(i % columns); });
  }
  int64_t key_place(int64_t slot_page, int64_t place, int64_t head, int64_t dim) const {
    return (slot_page * kv_cols() + head * attrs.head_dim + dim) * attrs.page_size + place;
  }
  int64_t value_place(int64_t slot_page, int64_t place, int64_t head, int64_t dim) const {
    return ((slot_page * attrs.kv_heads + head) * attrs.page_size + place) * attrs.head_dim + dim;
  }
};

struct Token {
  int64_t sequence, position;
  bool operator==(const Token&) const = default;
};

inline Tensor integers(size_t count, const std::function<int64_t(int64_t)>& value) {
  return make_tensor(DType::kI32, {static_cast<int64_t>(count)},
                     [&](int64_t i) { return static_cast<double>(value(i)); });
}

// Operands in the order of the op.
inline Tensors inputs_of(const Config& config, const std::vector<Token>& tokens, Tensor q, Tensor k,
                         Tensor v, Tensor keys, Tensor values) {
  return {std::move(q),
          std::move(k),
          std::move(v),
          std::move(keys),
          std::move(values),
          integers(tokens.size(), [&](int64_t i) { return tokens[i].sequence; }),
          integers(tokens.size(), [&](int64_t i) { return tokens[i].position; }),
          config.pages_tensor()};
}
// With random numbers.
inline Tensors inputs_of(const Config& config, const std::vector<Token>& tokens) {
  const auto count = static_cast<int64_t>(tokens.size());
  const DType dtype = config.dtype;
  return inputs_of(config, tokens, random_tensor(dtype, {count, config.q_cols()}, 1),
                   random_tensor(dtype, {count, config.kv_cols()}, 2),
                   random_tensor(dtype, {count, config.kv_cols()}, 3),
                   random_tensor(dtype, config.cache_shape(), 4),
                   random_tensor(dtype, config.cache_shape(), 5));
}

class Reference {
 public:
  Reference(const Config& config, const Tensors& in)
      : config_(config), in_(in), keys_(in[3].values), values_(in[4].values) {}

  Outputs run() {
    const auto [heads, kv_heads, head_dim, page_size, scale] = config_.attrs;
    const int64_t tokens = in_[0].shape.dim(0), group = heads / kv_heads;
    for (int64_t t = 0; t < tokens; ++t) {
      if (is_padding(t)) continue;
      const auto position = static_cast<int64_t>(in_[6][t]);
      for (int64_t i = 0; i < config_.kv_cols(); ++i) {
        const int64_t head = i / head_dim, dim = i % head_dim;
        keys_[key(t, position, head, dim)] = in_[1].at(t, i);
        values_[value(t, position, head, dim)] = in_[2].at(t, i);
      }
    }
    std::vector<double> o(tokens * heads * head_dim, 0.0);
    for (int64_t t = 0; t < tokens; ++t) {
      for (int64_t head = 0; head < heads && !is_padding(t); ++head) {
        attend(t, head, head / group, o.data() + (t * heads + head) * head_dim);
      }
    }
    return {o, keys_, values_};
  }

 private:
  bool is_padding(int64_t t) const {
    const auto s = static_cast<int64_t>(in_[5][t]), p = static_cast<int64_t>(in_[6][t]);
    const int64_t columns = in_[7].shape.dim(1);
    if (s < 0 || s >= in_[7].shape.dim(0) || p < 0 || p >= columns * config_.attrs.page_size) {
      return true;
    }
    for (int64_t i = 0; i <= p / config_.attrs.page_size; ++i) {
      if (in_[7].at(s, i) < 0 || in_[7].at(s, i) >= config_.num_pages) return true;
    }
    return false;
  }
  int64_t page(int64_t t, int64_t position) const {
    return static_cast<int64_t>(
        in_[7].at(static_cast<int64_t>(in_[5][t]), position / config_.attrs.page_size));
  }
  int64_t key(int64_t t, int64_t position, int64_t head, int64_t dim) const {
    return config_.key_place(page(t, position), position % config_.attrs.page_size, head, dim);
  }
  int64_t value(int64_t t, int64_t position, int64_t head, int64_t dim) const {
    return config_.value_place(page(t, position), position % config_.attrs.page_size, head, dim);
  }
  void attend(int64_t t, int64_t head, int64_t kv_head, double* o) const {
    const int64_t head_dim = config_.attrs.head_dim;
    const auto last = static_cast<int64_t>(in_[6][t]);
    std::vector<double> scores(last + 1, 0.0);
    for (int64_t j = 0; j <= last; ++j) {
      for (int64_t dim = 0; dim < head_dim; ++dim) {
        scores[j] += in_[0].at(t, head * head_dim + dim) * keys_[key(t, j, kv_head, dim)];
      }
      scores[j] *= config_.attrs.scale;
    }
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score - most);
    for (int64_t j = 0; j <= last; ++j) {
      for (int64_t dim = 0; dim < head_dim; ++dim) {
        o[dim] += scores[j] / sum * values_[value(t, j, kv_head, dim)];
      }
    }
  }

  const Config& config_;
  const Tensors& in_;
  std::vector<double> keys_, values_;
};

inline OpCase case_of(const Config& config, Tensors inputs) {
  return {.op = &kPagedAttention,
          .attrs = config.attrs.to_attrs(),
          .inputs = std::move(inputs),
          .reference = [config](const Tensors& in) { return Reference(config, in).run(); },
          .tolerance = config.dtype == DType::kF32 ? 4e-6 : 1e-5};
}

}  // namespace skein::op_test::paged
