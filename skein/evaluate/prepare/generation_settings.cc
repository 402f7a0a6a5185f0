#include "skein/evaluate/prepare/generation_settings.h"

#include <algorithm>
#include <string_view>

#include "skein/base/error.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

[[noreturn]] void refuse(const TaskConfig& task, const std::string& key, const Value& found,
                         const char* expected) {
  fail(ErrorCode::kInvalid, "task {}: generation_kwargs.{} is of type {}: expected {}", task.task,
       key, type_name(found), expected);
}

// What has no effect on a decoder that draws one token at a time.
bool is_without_effect(std::string_view key, const Value& value) {
  if (key == "num_return_sequences" || key == "num_beams") {
    return value.is_integer() && value.as_integer() == 1;
  }
  return key == "use_cache";
}

std::vector<std::string> stop_texts(const TaskConfig& task, const Value& value) {
  if (value.is_string()) return {value.text()};
  if (value.is(Kind::kNone)) return {};
  if (!value.is(Kind::kSequence)) refuse(task, "until", value, "a text or a list of texts");
  std::vector<std::string> texts;
  for (const Value& item : value.as_sequence().items) {
    if (!item.is_string()) refuse(task, "until", item, "texts");
    texts.push_back(item.text());
  }
  return texts;
}

}  // namespace

GenerationSettings generation_settings(const TaskConfig& task) {
  GenerationSettings settings;
  if (!task.generation_kwargs.is(Kind::kDict)) return settings;
  constexpr std::string_view kLengths[] = {"max_gen_toks", "max_new_tokens", "max_tokens",
                                           "max_completion_tokens"};
  size_t length_rank = std::size(kLengths);
  bool samples = false;
  double temperature = 1;
  for (const auto& entry : task.generation_kwargs.as_dict().entries) {
    const Value& value = entry.second;
    const std::string key = entry.first.is_string() ? entry.first.text() : type_name(entry.first);
    const auto number = [&] {
      return value.is_number() ? value.as_float() : (refuse(task, key, value, "a number"), 0.0);
    };
    const auto rank =
        static_cast<size_t>(std::find(std::begin(kLengths), std::end(kLengths), key) - kLengths);
    if (rank < std::size(kLengths)) {
      if (value.is(Kind::kNone) || rank > length_rank) continue;
      length_rank = rank;
      settings.max_tokens = static_cast<int64_t>(number());
    } else if (key == "until") {
      settings.until = stop_texts(task, value);
    } else if (key == "do_sample") {
      samples = is_true(value);
    } else if (key == "temperature") {
      temperature = number();
    } else if (key == "top_p") {
      settings.top_p = number();
    } else if (key == "top_k") {
      settings.top_k = static_cast<int64_t>(number());
    } else if (!is_without_effect(key, value)) {
      fail(ErrorCode::kUnsupported,
           "task {}: generation_kwargs.{}: expected until, max_gen_toks, do_sample, temperature, "
           "top_p or top_k",
           task.task, key);
    }
  }
  if (settings.max_tokens < 1) {
    fail(ErrorCode::kInvalid, "task {}: generates up to {} tokens: expected at least 1", task.task,
         settings.max_tokens);
  }
  settings.temperature = samples ? temperature : 0;
  return settings;
}

}  // namespace skein
