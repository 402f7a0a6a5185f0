#include "skein/serve/api/answer_json.h"

#include <algorithm>
#include <utility>

#include "skein/base/text/json_text.h"
#include "skein/base/text/utf8.h"
#include "skein/serve/api/api_error.h"

namespace skein {
namespace {

OrderedJson head(const AnswerForm& form, const char* completion, const char* chat) {
  OrderedJson json;
  json["id"] = form.id;
  json["object"] = form.is_chat ? chat : completion;
  json["created"] = form.created;
  json["model"] = form.model;
  return json;
}

OrderedJson usage_json(const AnswerUsage& usage) {
  OrderedJson json;
  json["prompt_tokens"] = usage.prompt_tokens;
  json["completion_tokens"] = usage.completion_tokens;
  json["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  return json;
}

OrderedJson number_or_null(const std::optional<float>& number) {
  return number ? OrderedJson(*number) : OrderedJson(nullptr);
}

const std::string& shown_name(const AnsweredToken& token) {
  return token.name.empty() ? token.text : token.name;
}

OrderedJson top_object(const AnsweredToken& token) {
  OrderedJson top = OrderedJson::object();
  const auto put = [&](const std::string& text, float logprob) {
    if (!top.contains(text) || top[text].get<float>() < logprob) top[text] = logprob;
  };
  for (const auto& [text, logprob] : token.top) put(text, logprob);
  put(shown_name(token), *token.logprob);
  return top;
}

OrderedJson completion_logprobs(const AnsweredText& text) {
  OrderedJson logprobs;
  for (const char* key : {"text_offset", "token_logprobs", "tokens", "top_logprobs"}) {
    logprobs[key] = OrderedJson::array();
  }
  int64_t offset = text.offset;
  for (const AnsweredToken& token : text.tokens) {
    logprobs["text_offset"].push_back(offset);
    logprobs["token_logprobs"].push_back(number_or_null(token.logprob));
    logprobs["tokens"].push_back(shown_name(token));
    logprobs["top_logprobs"].push_back(token.logprob ? top_object(token) : OrderedJson(nullptr));
    offset += static_cast<int64_t>(utf8::num_characters(token.text));
  }
  return logprobs;
}

OrderedJson chat_token(const std::string& text, float logprob) {
  OrderedJson token;
  token["token"] = text;
  token["logprob"] = logprob;
  token["bytes"] = OrderedJson::array();
  for (const char byte : text) token["bytes"].push_back(static_cast<unsigned char>(byte));
  return token;
}

OrderedJson chat_logprobs(const AnsweredText& text) {
  OrderedJson content = OrderedJson::array();
  for (const AnsweredToken& token : text.tokens) {
    OrderedJson json = chat_token(token.text, token.logprob.value_or(0));
    json["top_logprobs"] = OrderedJson::array();
    for (const auto& [top, logprob] : token.top) {
      json["top_logprobs"].push_back(chat_token(top, logprob));
    }
    content.push_back(std::move(json));
  }
  OrderedJson logprobs;
  logprobs["content"] = std::move(content);
  logprobs["refusal"] = nullptr;
  return logprobs;
}

OrderedJson choice_json(const AnswerForm& form, const AnsweredText& text, bool is_part) {
  OrderedJson choice;
  choice["index"] = text.index;
  if (!form.is_chat) {
    choice["text"] = text.text;
  } else if (is_part) {
    choice["delta"] = OrderedJson::object();
    if (!text.text.empty()) choice["delta"]["content"] = text.text;
  } else {
    choice["message"]["role"] = "assistant";
    choice["message"]["content"] = text.text;
    choice["message"]["refusal"] = nullptr;
  }
  if (!form.has_logprobs) {
    choice["logprobs"] = nullptr;
  } else {
    choice["logprobs"] = form.is_chat ? chat_logprobs(text) : completion_logprobs(text);
  }
  choice["finish_reason"] =
      text.finish_reason.empty() ? OrderedJson(nullptr) : OrderedJson(text.finish_reason);
  return choice;
}

std::string event(const OrderedJson& json) { return "data: " + json_text(json) + "\n\n"; }

OrderedJson chunk(const AnswerForm& form, OrderedJson choice, bool with_null_usage) {
  OrderedJson json = head(form, "text_completion", "chat.completion.chunk");
  json["choices"] = OrderedJson::array();
  json["choices"].push_back(std::move(choice));
  if (with_null_usage) json["usage"] = nullptr;
  return json;
}

}  // namespace

std::string whole_answer(const AnswerForm& form, const std::vector<AnsweredText>& texts,
                         const AnswerUsage& usage) {
  OrderedJson json = head(form, "text_completion", "chat.completion");
  json["choices"] = OrderedJson::array();
  for (const AnsweredText& text : texts) json["choices"].push_back(choice_json(form, text, false));
  json["usage"] = usage_json(usage);
  return json_text(json) + "\n";
}

std::string first_event(const AnswerForm& form, int64_t index, bool with_null_usage) {
  OrderedJson choice;
  choice["index"] = index;
  choice["delta"]["role"] = "assistant";
  choice["delta"]["content"] = "";
  choice["logprobs"] = nullptr;
  choice["finish_reason"] = nullptr;
  return event(chunk(form, std::move(choice), with_null_usage));
}

std::string text_event(const AnswerForm& form, const AnsweredText& part, bool with_null_usage) {
  return event(chunk(form, choice_json(form, part, true), with_null_usage));
}

std::string usage_event(const AnswerForm& form, const AnswerUsage& usage) {
  OrderedJson json = head(form, "text_completion", "chat.completion.chunk");
  json["choices"] = OrderedJson::array();
  json["usage"] = usage_json(usage);
  return event(json);
}

std::string error_event(const std::string& message) {
  std::string body = api_error_body(500, message);
  body.pop_back();
  return "data: " + body + "\n\n";
}

}  // namespace skein
