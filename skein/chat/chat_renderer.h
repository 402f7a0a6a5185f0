// Conversations become documents: the text that a chat template gives, and which bytes of it the
// assistant wrote, for `data.loss_on = "completion"`.
//
// Spans    what {% generation %} blocks of the template wrote. A template without them is rendered
//          for the beginnings of the conversation: a span begins where the prompt for the
//          assistant's turn ends (add_generation_prompt) and ends with the turn, its end marker
//          included. Where a beginning is rendered otherwise than as a part of the whole, that is
//          an error: it cannot be known then.
// Weights  a message with "weight": 0 or "train": false has no span
// Tokens   the text spells BOS and EOS as the template does (lane.h has them once)
// Errors   Error{kInvalid} beginning with `where`
// Threads  several may render at once
#pragma once

#include <ctime>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/chat/chat_template.h"
#include "skein/chat/conversation.h"
#include "skein/data/corpus/corpus.h"
#include "skein/jinja/template.h"

namespace skein {

// The time by this machine's clock and zone.
std::tm local_time();

struct ChatOptions {
  ChatTemplateSource source;
  bool finds_spans = true;
  std::tm now{};  // what strftime_now of the template goes by
};

struct RenderedChat {
  std::string text;
  std::vector<ByteRange> spans;  // in order, none is empty
};

class ChatRenderer {
 public:
  explicit ChatRenderer(ChatOptions options);

  RenderedChat render(std::string_view object, const std::string& where) const;
  struct PromptOptions {
    std::tm now{};            // what strftime_now of the template goes by
    bool begins_turn = true;  // what begins the assistant's next turn stands at the end
  };
  std::string prompt(std::string_view object, const std::string& where,
                     const PromptOptions& options) const;

  const ChatOptions& options() const { return options_; }
  bool has_generation() const { return template_.has_generation(); }
  bool spells(std::string_view word) const { return template_.spells(word); }
  bool spells_time() const { return spells("strftime_now"); }
  // All that the documents depend on.
  Json key() const;

 private:
  jinja::Rendered render_turns(const Conversation& conversation, size_t count, bool prompts,
                               const jinja::RenderOptions& options) const;
  std::vector<ByteRange> spans_of_blocks(const Conversation& conversation,
                                         std::span<const jinja::Span> blocks,
                                         const std::string& where) const;
  std::vector<ByteRange> spans_of_turns(const Conversation& conversation, const std::string& whole,
                                        const std::string& where) const;

  ChatOptions options_;
  jinja::Template template_;
  jinja::RenderOptions render_options_;
};

}  // namespace skein
