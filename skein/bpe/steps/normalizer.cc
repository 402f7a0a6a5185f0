#include "skein/bpe/steps/normalizer.h"

#include "skein/base/text/utf8.h"
#include "skein/bpe/unicode/byte_alphabet.h"
#include "skein/bpe/unicode/properties.h"

namespace skein::bpe {
namespace {

using Session = Normalizer::Session;

std::string_view run(const FormStep& step, std::string_view text, Session&, std::string& out) {
  return to_normal_form(text, step.form, out);
}

std::string_view replace_text(const ReplaceStep& step, std::string_view text, std::string& out) {
  size_t at = text.find(step.text);
  if (at == std::string_view::npos) return text;
  for (size_t begin = 0;; at = text.find(step.text, begin)) {
    out += text.substr(begin, at - begin);
    if (at == std::string_view::npos) return out;
    out += step.content;
    begin = at + step.text.size();
  }
}

std::string_view run(const ReplaceStep& step, std::string_view text, Session& session,
                     std::string& out) {
  if (step.expression == nullptr) return replace_text(step, text, out);
  step.expression->classify(text, session.classes);
  session.matcher.begin_text(text.size());
  session.matcher.find_all(*step.expression, session.classes, session.found);
  size_t at = 0, character = 0;
  const auto go_to = [&](size_t place, bool copies) {
    const size_t begin = at;
    for (; character < place; ++character) at = utf8::next_character_start(text, at + 1);
    if (copies) out += text.substr(begin, at - begin);
  };
  for (const Span& match : session.found) {
    go_to(match.begin, true);
    out += step.content;
    go_to(match.end, false);
  }
  out += text.substr(at);
  return out;
}

std::string_view run(const PrependStep& step, std::string_view text, Session&, std::string& out) {
  return out.append(step.text).append(text);
}

std::string_view run(const StripStep& step, std::string_view text, Session&, std::string&) {
  const CodePoints& spaces = unicode_spaces();
  while (step.left && !text.empty()) {
    const utf8::Character first = utf8::first_character(text);
    if (!spaces.contains(first.code)) break;
    text.remove_prefix(static_cast<size_t>(first.size));
  }
  while (step.right && !text.empty()) {
    const size_t last = utf8::character_start(text, text.size() - 1);
    if (!spaces.contains(utf8::first_character(text.substr(last)).code)) break;
    text = text.substr(0, last);
  }
  return text;
}

std::string_view run(const SpellBytesStep&, std::string_view text, Session&, std::string& out) {
  for (const char byte : text) utf8::append(out, byte_alphabet()[static_cast<uint8_t>(byte)]);
  return out;
}

}  // namespace

std::string_view Normalizer::apply(std::string_view text, Session& session) const {
  for (const NormalizerStep& step : steps) {
    if (text.empty()) return text;
    std::string& first = session.buffers[0];
    const bool is_in_first =
        text.data() >= first.data() && text.data() < first.data() + first.capacity();
    std::string& out = session.buffers[is_in_first ? 1 : 0];
    out.clear();
    text = std::visit([&](const auto& each) { return run(each, text, session, out); }, step);
  }
  return text;
}

}  // namespace skein::bpe
