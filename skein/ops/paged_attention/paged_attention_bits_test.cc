// The bits of a token's output depend on itself and what is before it in its sequence, and on
// nothing else.
#include <algorithm>
#include <limits>
#include <map>

#include "tests/ops/paged_attention_reference.h"

namespace skein {
namespace {

using namespace op_test;         // NOLINT(google-build-using-namespace)
using namespace op_test::paged;  // NOLINT(google-build-using-namespace)

constexpr int64_t kSequences = 3;
constexpr const char* kNotHere = "a compiler chooses the order of sums for each shape";

// q, k and v of whole sequences, of which calls take tokens.
struct Texts {
  Texts(const Config& config, int64_t length)
      : length(length),
        q(random_tensor(config.dtype, {kSequences * length, config.q_cols()}, 11, 2.0)),
        k(random_tensor(config.dtype, {kSequences * length, config.kv_cols()}, 12, 2.0)),
        v(random_tensor(config.dtype, {kSequences * length, config.kv_cols()}, 13)) {}
  int64_t length;
  Tensor q, k, v;
};

// A cache that begins with NaNs everywhere, and the outputs of all tokens that it was given.
class Server {
 public:
  Server(Config config, const Texts& texts, GraphRun::Options options = {})
      : config_(std::move(config)), texts_(texts), options_(options) {
    for (Tensor* cache : {&keys_, &values_}) {
      *cache = make_tensor(config_.dtype, config_.cache_shape(),
                           [](int64_t) { return std::numeric_limits<double>::quiet_NaN(); });
    }
  }

  void call(const std::vector<Token>& tokens) {
    const OpCase test = case_of(
        config_, inputs_of(config_, tokens, rows_of(texts_.q, tokens), rows_of(texts_.k, tokens),
                           rows_of(texts_.v, tokens), keys_, values_));
    const BuiltCase built = build(test, 3);
    const GraphRun run(built.graph, built.inputs, options_);
    const std::vector<ValueId>& outputs = built.graph.nodes()[0].outputs;
    const std::vector<double> o = run.read(outputs[0]);
    keys_.values = run.read(outputs[1]);
    values_.values = run.read(outputs[2]);
    const int64_t cols = texts_.q.shape.cols();
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].sequence < 0) continue;
      rows[{tokens[i].sequence, tokens[i].position}] = {o.begin() + i * cols,
                                                        o.begin() + (i + 1) * cols};
    }
  }
  // Positions [begin, end) of a sequence.
  void call(int64_t sequence, int64_t begin, int64_t end) {
    std::vector<Token> tokens;
    for (int64_t p = begin; p < end; ++p) tokens.push_back({sequence, p});
    call(tokens);
  }

  std::map<std::pair<int64_t, int64_t>, std::vector<double>> rows;

 private:
  Tensor rows_of(const Tensor& all, const std::vector<Token>& tokens) const {
    const int64_t cols = all.shape.cols();
    return make_tensor(config_.dtype, {static_cast<int64_t>(tokens.size()), cols}, [&](int64_t i) {
      const Token& token = tokens[i / cols];
      if (token.sequence < 0) return 1e30;
      return all.at(token.sequence * texts_.length + token.position, i % cols);
    });
  }

  Config config_;
  const Texts& texts_;
  GraphRun::Options options_;
  Tensor keys_, values_;
};

// The tokens of `got` have the bits that `want` has of them.
void expect_same(const Server& got, const Server& want, const std::string& what) {
  for (const auto& [token, row] : got.rows) {
    const std::vector<double>& other = want.rows.at(token);
    ASSERT_TRUE(std::none_of(row.begin(), row.end(), [](double x) { return std::isnan(x); }))
        << what;
    ASSERT_EQ(row, other) << what << ", position " << token.second << " of sequence "
                          << token.first;
  }
}

struct Sizes {
  DType dtype;
  int64_t heads, kv_heads, head_dim, page_size;
};

std::vector<Sizes> all_sizes() {
  std::vector<Sizes> sizes = {{DType::kF32, 4, 2, 16, 16}, {DType::kBF16, 4, 1, 32, 48}};
  if (!test_device().is_slow) {
    sizes.push_back({DType::kBF16, 8, 1, 64, 64});
    sizes.push_back({DType::kBF16, 2, 2, 80, 16});
    sizes.push_back({DType::kF32, 3, 3, 20, 32});
  }
  return sizes;
}

struct Experiment {
  explicit Experiment(const Sizes& given) : sizes(given) {}
  Config config(uint32_t stream = 1) const {
    Config config =
        Config::of(sizes.dtype, sizes.heads, sizes.kv_heads, sizes.head_dim, sizes.page_size);
    config.draw_pages(kSequences, length, stream);
    return config;
  }
  // Each sequence whole, in a call of its own.
  Server whole() const {
    Server server(config(), texts);
    for (int64_t s = 0; s < kSequences; ++s) server.call(s, 0, length);
    return server;
  }
  std::string name() const {
    return fmt::format("{}, heads {}:{} of {}, pages of {}", dtype_name(sizes.dtype), sizes.heads,
                       sizes.kv_heads, sizes.head_dim, sizes.page_size);
  }

  Sizes sizes;
  int64_t length = test_device().is_slow ? 70 : 150;
  Texts texts = Texts(config(), length);
};

TEST(PagedAttentionBits, TokenByToken) {
  if (test_device().compiles) GTEST_SKIP() << kNotHere;
  for (const Sizes& sizes : all_sizes()) {
    const Experiment experiment(sizes);
    Server server(experiment.config(), experiment.texts, {.num_threads = 1});
    for (int64_t p = 0; p < experiment.length; ++p) server.call({{1, p}});
    expect_same(server, experiment.whole(), experiment.name());
  }
}

TEST(PagedAttentionBits, PiecesOfAnySize) {
  if (test_device().compiles) GTEST_SKIP() << kNotHere;
  for (const Sizes& sizes : all_sizes()) {
    const Experiment experiment(sizes);
    const Server want = experiment.whole();
    const Philox random(5, RandomPurpose::kDataOrder, 0, 0);
    uint64_t draw = 0;
    for (const int64_t most : {9, 90}) {
      Server server(experiment.config(), experiment.texts);
      for (int64_t begin = 0; begin < experiment.length;) {
        const int64_t end =
            std::min<int64_t>(experiment.length, begin + 1 + random.word(draw++) % most);
        server.call(2, begin, end);
        begin = end;
      }
      expect_same(server, want, fmt::format("{}, up to {}", experiment.name(), most));
    }
  }
}

// All sequences together, each at another place, with padding between them; in other pages, with
// distant rows and any number of threads.
TEST(PagedAttentionBits, OtherTokensOtherPagesOtherThreads) {
  if (test_device().compiles) GTEST_SKIP() << kNotHere;
  for (const Sizes& sizes : all_sizes()) {
    const Experiment experiment(sizes);
    const Server want = experiment.whole();
    for (const int num_threads : {1, 2, 3}) {
      Server server(experiment.config(7 + num_threads), experiment.texts,
                    {.num_threads = num_threads, .row_padding = 3});
      server.call(0, 0, 40);
      server.call(2, 0, 13);
      int64_t next[] = {40, 0, 13};
      for (const int64_t step : {1, 7, 1, 30, 90, 200}) {
        std::vector<Token> tokens;
        for (const int64_t s : {1, 0, 2}) {
          const int64_t count = s == 1 ? step : std::max<int64_t>(1, step / 2);
          for (int64_t i = 0; i < count && next[s] < experiment.length; ++i)
            tokens.push_back({s, next[s]++});
          if (s != 0) tokens.push_back({-1, 0});
        }
        server.call(tokens);
      }
      expect_same(server, want, fmt::format("{}, {} threads", experiment.name(), num_threads));
    }
  }
}

// A cache's place that is behind a token holds NaN here, and infinity where a later token is.
TEST(PagedAttentionBits, LaterTokensOfTheCallDoNotMatter) {
  for (const Sizes& sizes : all_sizes()) {
    const Experiment experiment(sizes);
    Texts changed = experiment.texts;
    const int64_t first = experiment.length - 9, cols = experiment.texts.v.shape.cols();
    for (int64_t i = first * cols; i < experiment.length * cols; ++i) {
      changed.v.values[i] = std::numeric_limits<double>::infinity();
      changed.k.values[i] = 1e20;
    }
    Server server(experiment.config(), changed);
    server.call(0, 0, experiment.length);
    std::erase_if(server.rows, [&](const auto& row) { return row.first.second >= first; });
    ASSERT_EQ(static_cast<int64_t>(server.rows.size()), first);
    expect_same(server, experiment.whole(), experiment.name());
  }
}

}  // namespace
}  // namespace skein
