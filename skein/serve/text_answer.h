// The answer to one request: its texts grow on the engine's thread, and go out as a whole or in
// pieces.
//
// Ends     of a text: an end-of-text token, a stop token or a stop text, which do not belong to it
//          ("stop"), or max_tokens ("length")
// Scores   of a prompt (echo) come when its text ends; so a stream with both waits for them
// Threads  made on any thread; afterwards the engine's alone
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "skein/infer/engine.h"
#include "skein/infer/text_stream.h"
#include "skein/serve/api/answer_json.h"
#include "skein/serve/api/generation_request.h"
#include "skein/serve/http/http_reply.h"
#include "skein/serve/served_model.h"

namespace skein {

class TextAnswer : public std::enable_shared_from_this<TextAnswer> {
 public:
  struct Options {
    GenerationRequest request;
    bool echo = false;
    bool is_chat = false;
    std::string id;
    std::function<void(const AnswerUsage&)> on_done;  // when the whole answer is given
  };
  TextAnswer(std::shared_ptr<const ServedModel> model, std::shared_ptr<HttpReply> reply,
             Options options);

  // The texts of one prompt, options.request.n of them; `max_new_tokens` fit.
  void add_prompt(std::vector<int32_t> tokens, std::string text, int64_t max_new_tokens,
                  bool needs_filler);
  // What the engine is asked; each request holds this answer. Empty: nothing needs an engine, and
  // the answer is given.
  std::vector<TextRequest> take_requests();

  void fail(int status, const std::string& message);

 private:
  struct Growing {
    std::shared_ptr<const std::vector<int32_t>> prompt;
    std::string prompt_text;
    TextStream stream;
    int64_t max_new_tokens = 0;
    uint64_t seed = 0;
    AnsweredText text;                          // what is known, and of a stream not given yet
    std::vector<AnsweredToken> waiting;         // whose texts are not out yet
    size_t num_bytes = 0, bytes_of_tokens = 0;  // since no token waited: known, and of tokens out
    int32_t last_token = -1;
    bool needs_filler = false;  // lm-evaluation-harness drops the last entry
    bool has_ended = false;
  };
  TextRequest request_of(Growing& text);
  void guard(const std::function<void()>& call);
  bool take(Growing& text, int32_t token, const TokenScore& score);
  void take_scores(Growing& text, std::span<const TokenScore> scores);
  void end(Growing& text);
  void grow(Growing& text, const std::string& piece);
  std::string name_of(int32_t token) const;  // empty: its text
  AnsweredToken token_of(int32_t before, int32_t token, const TokenScore& score) const;
  void give(Growing& text);
  void begin_stream();
  void finish();

  const std::shared_ptr<const ServedModel> model_;
  const std::shared_ptr<HttpReply> reply_;
  Options options_;
  AnswerForm form_;
  std::vector<std::unique_ptr<Growing>> texts_;
  AnswerUsage usage_;
  size_t num_ended_ = 0;
  bool has_stream_begun_ = false, has_failed_ = false;
};

}  // namespace skein
