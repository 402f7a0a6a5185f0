#include "skein/infer/engine.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "skein/base/error.h"
#include "skein/compile/parallel.h"
#include "skein/infer/serving_ranks.h"

namespace skein {
namespace {

// How many may go before one that waits for pages.
constexpr int64_t kMostOvertaken = 64;

void check_options(const DecoderConfig& model, const EngineOptions& options) {
  const int64_t limit = text_limit(model).tokens;
  const bool fits = options.max_positions >= 1 && options.max_positions <= limit &&
                    options.max_sequences >= 1 && options.max_tokens >= 1 &&
                    options.max_head_rows >= 1 && options.cache_bytes >= 0;
  if (!fits) {
    fail(ErrorCode::kInternal,
         "an engine for {} texts of {} positions, {} tokens a step: expected numbers from 1, and "
         "at most {} positions",
         options.max_sequences, options.max_positions, options.max_tokens, limit);
  }
  for (const DecoderTable& table : decoder_tables(model, options.max_positions)) {
    if (table.changes_beyond > 0 && options.max_positions > table.changes_beyond) {
      fail(ErrorCode::kUnsupported,
           "texts of {} positions, and the model's RoPE changes beyond {}: an engine keeps keys "
           "that were rotated as in shorter texts",
           options.max_positions, table.changes_beyond);
    }
  }
}

void check_request(const DecoderConfig& config, const TextRequest& request, int64_t limit) {
  const auto length = std::ssize(request.tokens);
  if (length == 0) fail(ErrorCode::kInvalid, "a text is empty: expected at least one token");
  if (request.score_from < 0 || request.score_from > length) {
    fail(ErrorCode::kInvalid, "a text of {} tokens is scored from token {}: expected 0 to {}",
         length, request.score_from, length);
  }
  if (request.max_new_tokens < 0 || (request.max_new_tokens > 0 && !request.on_token)) {
    fail(ErrorCode::kInternal, "a text may get {} new tokens, and {} takes them",
         request.max_new_tokens, request.on_token ? "somebody" : "nobody");
  }
  const int64_t not_read = request.max_new_tokens > 0 ? 0 : 1;  // the last of a scored text
  if (request.max_new_tokens > limit + not_read - length) {
    fail(ErrorCode::kInvalid,
         "a text has {} tokens and may get {} more: expected at most {} in all", length,
         request.max_new_tokens, limit);
  }
  for (const int32_t token : request.tokens) {
    if (token < 0 || token >= config.vocab_size) {
      fail(ErrorCode::kInvalid, "a text has the token id {}: expected 0 to {}", token,
           config.vocab_size - 1);
    }
  }
}

// The `num` tokens of the largest logits; of equal ones the smaller id goes before.
std::vector<TokenLogprob> likeliest(std::span<const float> logits, const TokenLogprob& best,
                                    int64_t num) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto logit = [&](int32_t id) { return logits[static_cast<size_t>(id)]; };
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(num, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    return logit(a) > logit(b) || (logit(a) == logit(b) && a < b);
  });
  std::vector<TokenLogprob> top;
  for (auto id = ids.begin(); id != end; ++id) {
    top.push_back({*id, logit(*id) - logit(best.token) + best.logprob});
  }
  return top;
}

}  // namespace

struct TextEngine::Text {
  TextRequest request;
  int64_t number = 0;
  std::vector<int32_t> tokens;  // the request's and the new ones
  TextPages pages;
  int32_t row = 0;
  int64_t num_read = 0;  // whose keys and values are in the cache
  int64_t num_new = 0;
  int64_t score_from = 0;  // the request's, or the first token whose score was not known
  std::vector<TokenScore> scores;
  bool is_done = false;

  bool continues() const { return request.max_new_tokens > 0; }
  // Whose keys and values or logits are needed: the last token of a text that is only scored tells
  // nothing.
  int64_t num_to_read() const { return std::ssize(tokens) - (continues() ? 0 : 1); }
  bool wants_logits(int64_t position) const {
    const bool scores_next =
        score_from > 0 && position + 1 >= score_from && position + 1 < std::ssize(request.tokens);
    return scores_next || (continues() && position + 1 == std::ssize(tokens));
  }
};

// What a step reads.
class TextEngine::Batch {
 public:
  explicit Batch(const ServingLayout& layout)
      : most_tokens(layout.max_tokens),
        most_rows(layout.max_head_rows),
        tokens(static_cast<size_t>(layout.max_tokens), 0),
        positions(tokens.size(), 0),
        sequences(tokens.size(), -1),
        head_rows(static_cast<size_t>(layout.head_rows(layout.max_tokens)), 0),
        labels(head_rows.size(), -1) {}

  struct HeadRow {
    Text* text;
    int64_t position;  // of the token whose logits it has
  };
  const int64_t most_tokens, most_rows;
  std::vector<int32_t> tokens, positions, sequences, head_rows, labels;
  int64_t size = 0;
  std::vector<HeadRow> wanted;
  std::vector<Text*> texts;
};

int64_t engine_positions(const DecoderConfig& model, int64_t max_length) {
  const TextLimit limit = text_limit(model);
  if (max_length > limit.tokens) {
    fail(ErrorCode::kUsage, "--max-length {}: the model is meant for {} tokens at most ({})",
         max_length, limit.tokens, limit.key);
  }
  return max_length > 0 ? max_length : limit.tokens;
}

ServingLayout engine_layout(const DecoderConfig& model, const EngineOptions& options) {
  check_options(model, options);
  ServingLayout layout;
  layout.max_positions = options.max_positions;
  layout.max_tokens = std::min(options.max_tokens, options.max_positions * options.max_sequences);
  if (options.tensor > 1) layout.mesh = tensor_mesh(model, options.tensor);
  layout.max_sequences = options.max_sequences;
  // Each text that is being continued gets a token in every step, and its logits.
  layout.max_tokens = std::max(layout.max_tokens, layout.max_sequences);
  layout.max_head_rows = std::clamp(options.max_head_rows, layout.max_sequences, layout.max_tokens);
  const int64_t of_a_text = layout.pages_of(layout.max_positions);
  layout.num_pages = of_a_text * layout.max_sequences;
  if (options.cache_bytes > 0) {
    const int64_t fit = options.cache_bytes / layout.page_bytes(model, options.compute_dtype);
    layout.num_pages = std::clamp(fit, of_a_text, layout.num_pages);
  }
  return layout;
}

TextEngine::TextEngine(const ModelSource& source, Device& device, const EngineOptions& options)
    : config_(source.config()),
      layout_(engine_layout(config_, options)),
      ranks_(std::make_unique<ServingRanks>(source, device, layout_, options)),
      pool_(layout_.num_pages, layout_.page_size),
      rows_(static_cast<size_t>(layout_.max_sequences)),
      page_table_(rows_.size() * static_cast<size_t>(layout_.pages_of(layout_.max_positions)), -1) {
}

TextEngine::~TextEngine() = default;

const ProgramSet& TextEngine::programs() const { return ranks_->programs(); }

int64_t TextEngine::num_running() const { return std::ssize(order_); }

int64_t TextEngine::add(TextRequest request) {
  check_request(config_, request, layout_.max_positions);
  waiting_.push_back({std::move(request), ++num_added_});
  return num_added_;
}

void TextEngine::cancel(int64_t number) {
  std::erase_if(waiting_, [&](const Waiting& waiting) { return waiting.number == number; });
  const auto text = std::find_if(order_.begin(), order_.end(),
                                 [&](const Text* running) { return running->number == number; });
  if (text != order_.end()) remove(**text);
}

bool TextEngine::step() {
  admit();
  Batch batch(layout_);
  fill(batch);
  if (batch.size > 0) {
    run(batch);
    take_results(batch);
  }
  const size_t before = order_.size();
  end_those_done();
  if (batch.size == 0 && order_.size() == before && !(order_.empty() && waiting_.empty())) {
    fail(ErrorCode::kInternal, "{} texts are under way and {} wait, and none can be read",
         order_.size(), waiting_.size());
  }
  return !order_.empty() || !waiting_.empty();
}

// What a callback throws is thrown on when all texts of the step are as they should be.
void TextEngine::end_those_done() {
  std::exception_ptr thrown = std::exchange(thrown_, nullptr);
  for (size_t i = 0; i < order_.size();) {
    Text& text = *order_[i];
    if (!text.is_done) {
      ++i;
      continue;
    }
    try {
      end(text);
    } catch (...) {
      if (!thrown) thrown = std::current_exception();
    }
  }
  if (thrown) std::rethrow_exception(thrown);
}

// Lists of the likeliest are not kept. Nothing: another text is just reading what this one begins
// with.
std::optional<KnownScores> TextEngine::known_scores(const TextRequest& request) const {
  if (request.score_from == 0 || request.num_top > 0) return KnownScores();
  return pool_.known_scores(request.tokens, request.score_from);
}

void TextEngine::admit() {
  for (auto waiting = waiting_.begin(); waiting != waiting_.end();) {
    const TextRequest& request = waiting->request;
    const auto row = std::find(rows_.begin(), rows_.end(), nullptr);
    if (row == rows_.end()) return;
    const auto length = std::ssize(request.tokens);
    const auto known = known_scores(request);
    const int64_t score_from =
        known && !known->scores.empty() ? known->num_tokens : request.score_from;
    const int64_t first_needed = score_from > 0 ? score_from - 1 : length - 1;
    const int64_t positions = std::min(length + request.max_new_tokens, layout_.max_positions);
    auto pages = known ? pool_.take(request.tokens, positions, first_needed) : std::nullopt;
    if (!pages) {
      if (waiting->num_overtaken >= kMostOvertaken) return;
      ++waiting;
      continue;
    }
    for (auto overtaken = waiting_.begin(); overtaken != waiting; ++overtaken) {
      ++overtaken->num_overtaken;
    }
    auto text = std::make_unique<Text>();
    text->request = std::move(waiting->request);
    text->number = waiting->number;
    waiting = waiting_.erase(waiting);
    text->tokens = text->request.tokens;
    text->pages = std::move(*pages);
    text->row = static_cast<int32_t>(row - rows_.begin());
    text->num_read = text->pages.num_shared;
    text->score_from = score_from;
    text->scores = std::move(known->scores);
    // One token of which nothing is asked, or all that is asked is known.
    text->is_done =
        text->num_read >= text->num_to_read() ||
        (!text->continues() && score_from > text->request.score_from && score_from >= length);
    counts_.tokens_shared += text->num_read;
    const size_t columns = page_table_.size() / rows_.size();
    const auto begin = page_table_.begin() + static_cast<std::ptrdiff_t>(text->row * columns);
    std::fill_n(std::copy(text->pages.pages.begin(), text->pages.pages.end(), begin),
                columns - text->pages.pages.size(), -1);  // the kernel takes -1 for padding
    table_changed_ = true;
    order_.push_back(text.get());
    *row = std::move(text);
  }
}

// Texts that are being continued come first: nobody waits for another's prompt.
void TextEngine::fill(Batch& batch) {
  const auto is_next = [](const Text& text) {
    return text.num_new > 0 && text.num_read + 1 == std::ssize(text.tokens);
  };
  for (const bool continued : {true, false}) {
    for (Text* text : order_) {
      if (!text->is_done && is_next(*text) == continued && add_piece(*text, batch)) {
        batch.texts.push_back(text);
      }
    }
  }
}

bool TextEngine::add_piece(Text& text, Batch& batch) const {
  const int64_t before = batch.size;
  for (int64_t position = text.num_read;
       position < text.num_to_read() && batch.size < batch.most_tokens; ++position) {
    if (text.wants_logits(position)) {
      if (std::ssize(batch.wanted) == batch.most_rows) break;
      const size_t head = batch.wanted.size();
      batch.head_rows[head] = static_cast<int32_t>(batch.size);
      const bool has_label = position + 1 < std::ssize(text.tokens);
      batch.labels[head] = has_label ? text.tokens[static_cast<size_t>(position + 1)] : -1;
      batch.wanted.push_back({&text, position});
    }
    const auto i = static_cast<size_t>(batch.size++);
    batch.tokens[i] = text.tokens[static_cast<size_t>(position)];
    batch.positions[i] = static_cast<int32_t>(position);
    batch.sequences[i] = text.row;
  }
  text.num_read += batch.size - before;
  return batch.size > before;
}

void TextEngine::run(const Batch& batch) {
  const std::vector<int64_t> counts = layout_.token_counts();
  const int64_t needed = *std::lower_bound(counts.begin(), counts.end(), batch.size);
  ranks_->on_all([&](Executor& executor) {
    const auto upload = [&](const char* name, const std::vector<int32_t>& values) {
      executor.upload(name, values.data(), std::ssize(values) * 4);
    };
    upload(decoder_names::kTokens, batch.tokens);
    upload(decoder_names::kPositions, batch.positions);
    upload(decoder_names::kSequence, batch.sequences);
    upload(decoder_names::kHeadRows, batch.head_rows);
    upload(decoder_names::kHeadLabels, batch.labels);
    if (table_changed_) upload(decoder_names::kPages, page_table_);
    executor.run(read_program(needed));
  });
  table_changed_ = false;
  ++counts_.steps;
  counts_.tokens_read += batch.size;
}

void TextEngine::take_results(const Batch& batch) {
  for (Text* text : batch.texts) {
    pool_.note_read(text->pages, std::min(text->num_read, std::ssize(text->request.tokens)));
  }
  const size_t rows = batch.head_rows.size();
  std::vector<float> logprob(rows), best_logprob(rows);
  std::vector<int32_t> best(rows);
  const Executor& executor = ranks_->first();
  executor.download(decoder_names::kLogProb, logprob.data(), std::ssize(logprob) * 4);
  executor.download(decoder_names::kBestLogProb, best_logprob.data(), std::ssize(logprob) * 4);
  executor.download(decoder_names::kBest, best.data(), std::ssize(best) * 4);
  for (size_t row = 0; row < batch.wanted.size(); ++row) {
    const auto& [text, position] = batch.wanted[row];
    const auto head_row = static_cast<int64_t>(row);
    TokenScore score{.logprob = logprob[row], .best = {best[row], best_logprob[row]}, .top = {}};
    if (text->request.num_top > 0) {
      score.top = likeliest(logits_of(head_row), score.best, text->request.num_top);
    }
    if (batch.labels[row] >= 0) {
      pool_.note_score(text->pages, position + 1, score);
      text->scores.push_back(std::move(score));
    } else {
      sample(*text, head_row, std::move(score));
    }
  }
  for (Text* text : batch.texts) {
    text->is_done = text->is_done || text->num_read >= text->num_to_read();
  }
}

std::span<float> TextEngine::logits_of(int64_t head_row) {
  Executor& executor = ranks_->first();
  const View logits = executor.view(decoder_names::kLogits);
  logits_.resize(static_cast<size_t>(config_.vocab_size));
  const float* row = logits.as<const float>() + head_row * logits.row_stride;
  executor.device().download(logits_.data(), row, config_.vocab_size * 4);
  return logits_;
}

void TextEngine::sample(Text& text, int64_t head_row, TokenScore score) {
  const SamplingOptions& sampling = text.request.sampling;
  int32_t token = score.best.token;
  score.logprob = score.best.logprob;
  if (sampling.needs_logits(token)) {
    const std::span<float> logits = logits_of(head_row);
    const float most = logits[static_cast<size_t>(token)];
    const std::vector<float> own(logits.begin(), logits.end());
    token = next_token(logits, sampling, {text.tokens, std::ssize(text.request.tokens)});
    score.logprob += own[static_cast<size_t>(token)] - most;
  }
  ++counts_.tokens_made;
  text.is_done = true;  // also where the callback throws
  try {
    const bool goes_on = text.request.on_token(token, score);
    text.tokens.push_back(token);
    text.is_done = !goes_on || ++text.num_new == text.request.max_new_tokens;
  } catch (...) {
    if (!thrown_) thrown_ = std::current_exception();
  }
}

std::unique_ptr<TextEngine::Text> TextEngine::remove(Text& text) {
  pool_.give_back(text.pages);
  order_.erase(std::find(order_.begin(), order_.end(), &text));
  return std::move(rows_[static_cast<size_t>(text.row)]);
}

void TextEngine::end(Text& text) {
  const std::unique_ptr<Text> ended = remove(text);
  if (ended->request.on_scores) ended->request.on_scores(ended->scores);
  if (ended->request.on_end) ended->request.on_end();
}

}  // namespace skein
