#include "skein/serve/text_answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <iterator>
#include <utility>

#include "skein/base/text/log.h"
#include "skein/base/text/utf8.h"
#include "skein/serve/api/api_error.h"

namespace skein {
namespace {

// Seeds of the texts of a prompt: the first is the request's own, so that it does not depend on n.
uint64_t seed_of(uint64_t seed, int64_t index) {
  return seed + static_cast<uint64_t>(index) * 0x9e3779b97f4a7c15ULL;
}

// The text of `token` behind `before`: a decoder drops the blank before a text's first word. A row
// that only pads the vocabulary has none, and may be among the likeliest.
std::string token_text(const Tokenizer& tokenizer, int32_t before, int32_t token) {
  if (!tokenizer.has_token(token)) return "";
  if (before < 0) return tokenizer.decode(std::vector<int32_t>{token});
  const std::string first = tokenizer.decode(std::vector<int32_t>{before});
  std::string both = tokenizer.decode(std::vector<int32_t>{before, token});
  if (!both.starts_with(first)) return tokenizer.decode(std::vector<int32_t>{token});
  return both.substr(first.size());
}

}  // namespace

TextAnswer::TextAnswer(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
                       Options options)
    : model_(std::move(model)), reply_(std::move(reply)), options_(std::move(options)) {
  form_.id = options_.id;
  form_.model = model_->name();
  form_.created = static_cast<int64_t>(std::time(nullptr));
  form_.is_chat = options_.is_chat;
  form_.has_logprobs = options_.request.num_logprobs.has_value();
}

void TextAnswer::add_prompt(std::vector<int32_t> tokens, std::string text, int64_t max_new_tokens,
                            bool needs_filler) {
  usage_.prompt_tokens += std::ssize(tokens);
  const auto prompt = std::make_shared<const std::vector<int32_t>>(std::move(tokens));
  for (int64_t i = 0; i < options_.request.n; ++i) {
    // A chat's answer is a text of its own; another continues its prompt.
    auto growing = std::make_unique<Growing>(Growing{
        .prompt = prompt,
        .prompt_text = options_.echo ? text : "",
        .stream =
            TextStream(model_->tokenizer(), options_.is_chat ? std::vector<int32_t>() : *prompt,
                       options_.request.stop)});
    growing->text.index = std::ssize(texts_);
    growing->last_token = prompt->back();
    growing->needs_filler = needs_filler;
    growing->max_new_tokens = max_new_tokens;
    growing->seed = seed_of(options_.request.sampling.seed, i);
    texts_.push_back(std::move(growing));
  }
}

TextRequest TextAnswer::request_of(Growing& text) {
  TextRequest request;
  request.tokens = *text.prompt;
  request.max_new_tokens = text.max_new_tokens;
  request.sampling = options_.request.sampling;
  request.sampling.seed = text.seed;
  request.sampling.never = model_->never();
  // The likeliest alone costs nothing.
  const int64_t num_logprobs = options_.request.num_logprobs.value_or(0);
  request.num_top = num_logprobs > 1 ? num_logprobs : 0;
  if (options_.echo && form_.has_logprobs && request.tokens.size() > 1) request.score_from = 1;
  const auto self = shared_from_this();  // the engine may outlive everybody else
  request.on_scores = [self, &text](std::span<const TokenScore> scores) {
    self->guard([&] { self->take_scores(text, scores); });
  };
  if (text.max_new_tokens > 0) {
    request.on_token = [self, &text](int32_t token, const TokenScore& score) {
      bool continues = false;
      self->guard([&] { continues = self->take(text, token, score); });
      return continues;
    };
  }
  request.on_end = [self, &text] { self->guard([&] { self->end(text); }); };
  return request;
}

// What goes wrong with one answer ends that one, not the engine.
void TextAnswer::guard(const std::function<void()>& call) {
  if (has_failed_) return;
  try {
    call();
  } catch (const std::exception& error) {
    has_failed_ = true;
    log::error("{}: {}", options_.id, error.what());
    fail(500, "the server has failed; its log says why");
  }
}

std::vector<TextRequest> TextAnswer::take_requests() {
  std::vector<TextRequest> requests;
  for (const auto& text : texts_) requests.push_back(request_of(*text));
  const bool is_idle = std::all_of(requests.begin(), requests.end(), [](const TextRequest& one) {
    return one.max_new_tokens == 0 && one.score_from == 0;
  });
  if (!is_idle) return requests;
  for (const TextRequest& request : requests) {
    request.on_scores({});
    request.on_end();
  }
  return {};
}

std::string TextAnswer::name_of(int32_t token) const {
  return options_.request.tokens_as_ids ? fmt::format("token_id:{}", token) : "";
}

AnsweredToken TextAnswer::token_of(int32_t before, int32_t token, const TokenScore& score) const {
  const auto text_of = [&](int32_t id) { return token_text(model_->tokenizer(), before, id); };
  const auto shown = [&](int32_t id) {
    return options_.request.tokens_as_ids ? name_of(id) : text_of(id);
  };
  AnsweredToken answered{
      .text = text_of(token), .name = name_of(token), .logprob = score.logprob, .top = {}};
  const int64_t num = *options_.request.num_logprobs;
  if (num == 1) answered.top = {{shown(score.best.token), score.best.logprob}};
  for (const TokenLogprob& top : score.top)
    answered.top.emplace_back(shown(top.token), top.logprob);
  return answered;
}

// The scores of the prompt go before those of the new tokens, which came earlier.
void TextAnswer::take_scores(Growing& text, std::span<const TokenScore> scores) {
  if (!options_.echo || !form_.has_logprobs) return;
  const std::vector<int32_t>& prompt = *text.prompt;
  std::vector<AnsweredToken> tokens = {{.text = token_text(model_->tokenizer(), -1, prompt[0]),
                                        .name = name_of(prompt[0]),
                                        .logprob = std::nullopt,
                                        .top = {}}};
  for (size_t i = 0; i < scores.size(); ++i) {
    tokens.push_back(token_of(prompt[i], prompt[i + 1], scores[i]));
  }
  if (text.needs_filler) tokens.push_back({});
  text.text.tokens.insert(text.text.tokens.begin(), std::make_move_iterator(tokens.begin()),
                          std::make_move_iterator(tokens.end()));
}

bool TextAnswer::take(Growing& text, int32_t token, const TokenScore& score) {
  const GenerationRequest& request = options_.request;
  const auto& stops = request.stop_token_ids;
  ++usage_.completion_tokens;
  const bool is_end = (!request.ignore_eos && model_->ends_text(token)) ||
                      std::find(stops.begin(), stops.end(), token) != stops.end();
  if (is_end) {
    text.text.finish_reason = "stop";
    return false;
  }
  if (form_.has_logprobs) text.waiting.push_back(token_of(text.last_token, token, score));
  text.last_token = token;
  grow(text, text.stream.add(token));
  if (text.stream.is_stopped()) text.text.finish_reason = "stop";
  if (options_.request.is_streamed && !(options_.echo && form_.has_logprobs)) give(text);
  return !text.stream.is_stopped() && !reply_->is_cancelled();
}

// Tokens go out with their texts: those of a stop text never do.
void TextAnswer::grow(Growing& text, const std::string& piece) {
  text.text.text += piece;
  text.num_bytes += piece.size();
  if (!text.stream.holds_text() && !text.stream.is_stopped()) {
    std::move(text.waiting.begin(), text.waiting.end(), std::back_inserter(text.text.tokens));
    text.waiting.clear();
    text.num_bytes = text.bytes_of_tokens = 0;
    return;
  }
  auto token = text.waiting.begin();
  while (token != text.waiting.end() && text.bytes_of_tokens < text.num_bytes) {
    text.bytes_of_tokens += token->text.size();
    text.text.tokens.push_back(std::move(*token++));
  }
  text.waiting.erase(text.waiting.begin(), token);
}

void TextAnswer::end(Growing& text) {
  grow(text, text.stream.finish());
  if (text.stream.is_stopped()) text.text.finish_reason = "stop";
  if (text.text.finish_reason.empty()) text.text.finish_reason = "length";
  if (!options_.request.is_streamed) text.text.text.insert(0, text.prompt_text);
  text.has_ended = true;
  if (options_.request.is_streamed) give(text);
  if (++num_ended_ == texts_.size()) finish();
}

void TextAnswer::begin_stream() {
  if (std::exchange(has_stream_begun_, true)) return;
  reply_->begin_stream(200, "text/event-stream", {{"Cache-Control", "no-cache"}});
  if (!form_.is_chat) return;
  for (const auto& text : texts_) {
    reply_->write(first_event(form_, text->text.index, options_.request.include_usage));
  }
}

void TextAnswer::give(Growing& text) {
  begin_stream();
  text.text.text.insert(0, std::exchange(text.prompt_text, ""));
  AnsweredText& part = text.text;
  if (part.text.empty() && !text.has_ended) return;
  if (!text.has_ended) part.finish_reason.clear();
  reply_->write(text_event(form_, part, options_.request.include_usage));
  for (const AnsweredToken& token : part.tokens) {
    part.offset += static_cast<int64_t>(utf8::num_characters(token.text));
  }
  part.text.clear();
  part.tokens.clear();
}

void TextAnswer::finish() {
  if (options_.on_done) options_.on_done(usage_);
  if (options_.request.is_streamed) {
    if (options_.request.include_usage) reply_->write(usage_event(form_, usage_));
    reply_->write(kLastEvent);
    reply_->end();
    return;
  }
  std::vector<AnsweredText> texts;
  for (const auto& text : texts_) texts.push_back(std::move(text->text));
  reply_->send(200, "application/json", whole_answer(form_, texts, usage_));
}

void TextAnswer::fail(int status, const std::string& message) {
  if (!has_stream_begun_) {
    reply_->send(status, "application/json", api_error_body(status, message));
    return;
  }
  reply_->write(error_event(message));
  reply_->end();
}

}  // namespace skein
