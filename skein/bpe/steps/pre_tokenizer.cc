#include "skein/bpe/steps/pre_tokenizer.h"

#include <algorithm>
#include <array>

#include "skein/base/text/utf8.h"
#include "skein/bpe/steps/split_pattern.h"
#include "skein/bpe/unicode/byte_alphabet.h"

namespace skein::bpe {
namespace {

using Session = PreTokenizer::Session;
using Behavior = SplitStep::Behavior;

// Moves `to` forward by `count` characters.
void advance(std::string_view text, size_t& to, size_t count) {
  for (; count > 0; --count) to = utf8::next_character_start(text, to + 1);
}

// The buffer that the text is not in.
std::string& other_buffer(Session& session) {
  std::string& other = session.buffers[session.text.data() == session.buffers[0].data() ? 1 : 0];
  other.clear();
  return other;
}

void keep(Session& session, Span span) {
  if (span.begin < span.end) session.next.push_back(span);
}

// `found` are the matches in `word`; what becomes of it goes to session.next.
void cut_isolated(Span word, Session& session) {
  size_t begin = word.begin;
  for (const Span& match : session.found) {
    keep(session, {begin, match.begin});
    keep(session, match);
    begin = match.end;
  }
  keep(session, {begin, word.end});
}

void list_matches(Span word, bool invert, Session& session) {
  session.matches.clear();
  size_t begin = word.begin;
  for (const Span& match : session.found) {
    if (begin != match.begin) session.matches.push_back({{begin, match.begin}, invert});
    session.matches.push_back({match, !invert});
    begin = match.end;
  }
  if (begin != word.end) session.matches.push_back({{begin, word.end}, invert});
}

void cut(Span word, const SplitStep& step, Session& session) {
  if (step.behavior == Behavior::kIsolated) return cut_isolated(word, session);
  list_matches(word, step.invert, session);
  auto& matches = session.matches;
  if (step.behavior == Behavior::kRemoved) {
    for (const auto& [span, is_match] : matches) {
      if (!is_match) keep(session, span);
    }
    return;
  }
  const bool is_next = step.behavior == Behavior::kMergedWithNext;
  if (is_next) std::reverse(matches.begin(), matches.end());
  std::vector<Span> joined;
  bool was_match = false;
  for (const auto& [span, is_match] : matches) {
    const bool joins =
        step.behavior == Behavior::kContiguous ? is_match == was_match : is_match && !was_match;
    if (joins && !joined.empty()) {
      (is_next ? joined.back().begin : joined.back().end) = is_next ? span.begin : span.end;
    } else {
      joined.push_back(span);
    }
    was_match = is_match;
  }
  if (is_next) std::reverse(joined.begin(), joined.end());
  for (const Span& span : joined) keep(session, span);
}

void split_by_text(const SplitStep& step, Session& session) {
  for (const Span& word : session.words) {
    const std::string_view text = session.text.substr(0, word.end);
    session.found.clear();
    for (size_t at = text.find(step.text, word.begin); at != std::string_view::npos;
         at = text.find(step.text, at + step.text.size())) {
      session.found.push_back({at, at + step.text.size()});
    }
    cut(word, step, session);
  }
}

void split_by_expression(const SplitStep& step, Session& session) {
  const std::string_view text = session.text;
  step.expression->classify(text, session.classes);
  const bool is_ascii = session.classes.size() == text.size();
  size_t at = 0, num_before = 0;  // bytes of the text, and characters in them
  for (const Span& word : session.words) {
    num_before +=
        is_ascii ? word.begin - at : utf8::num_characters(text.substr(at, word.begin - at));
    const std::string_view in_word = text.substr(word.begin, word.end - word.begin);
    const size_t count = is_ascii ? in_word.size() : utf8::num_characters(in_word);
    session.matcher.find_all(*step.expression,
                             std::string_view(session.classes).substr(num_before, count),
                             session.found);
    at = word.begin;
    size_t character = 0;
    for (Span& match : session.found) {  // from characters of the word to bytes of the text
      for (size_t* const place : {&match.begin, &match.end}) {
        if (is_ascii) {
          at = word.begin + *place;
        } else {
          advance(text, at, *place - character);
        }
        character = *place;
        *place = at;
      }
    }
    cut(word, step, session);
    num_before += count;
    at = word.end;
  }
}

void split_by_gpt2(Session& session) {
  static const SplitPattern kPattern(SplitPattern::Kind::kGpt2);
  for (const Span& word : session.words) {
    kPattern.with_end_of_word([&](auto end_of_word) {
      const char* const text = session.text.data();
      for (const char* at = text + word.begin; at < text + word.end;) {
        const char* const behind = end_of_word(at, text + word.end);
        keep(session, {static_cast<size_t>(at - text), static_cast<size_t>(behind - text)});
        at = behind;
      }
    });
  }
}

// Copies each word to the other buffer as copy(word, out) has it.
template <class Copy>
void rewrite(Session& session, Copy&& copy) {
  std::string& out = other_buffer(session);
  for (Span& word : session.words) {
    const size_t begin = out.size();
    copy(word, session.text.substr(word.begin, word.end - word.begin), out);
    word = {begin, out.size()};
  }
  session.text = out;
}

void take(Session& session) {
  session.words.swap(session.next);
  session.next.clear();
}

void run(const SplitStep& step, bool, Session& session) {
  if (step.expression != nullptr) {
    split_by_expression(step, session);
  } else {
    split_by_text(step, session);
  }
  take(session);
}

void run(const ByteLevelStep& step, bool, Session& session) {
  const auto lacks_space = [&](const Span& word) { return session.text[word.begin] != ' '; };
  if (step.add_prefix_space &&
      std::any_of(session.words.begin(), session.words.end(), lacks_space)) {
    rewrite(session, [](Span, std::string_view word, std::string& out) {
      if (word[0] != ' ') out.push_back(' ');
      out += word;
    });
  }
  if (step.use_regex) {
    split_by_gpt2(session);
    take(session);
  }
  if (step.spells) {
    rewrite(session, [](Span, std::string_view word, std::string& out) {
      for (const char byte : word) utf8::append(out, byte_alphabet()[static_cast<uint8_t>(byte)]);
    });
  }
}

void run(const MetaspaceStep& step, bool is_first, Session& session) {
  using Prepend = MetaspaceStep::Prepend;
  rewrite(session, [&](Span span, std::string_view word, std::string& out) {
    const bool prepends = step.prepend == Prepend::kAlways ||
                          (step.prepend == Prepend::kFirst && is_first && span.begin == 0);
    if (prepends && word[0] != ' ' && !word.starts_with(step.replacement)) out += step.replacement;
    for (const char c : word) {
      if (c == ' ') {
        out += step.replacement;
      } else {
        out.push_back(c);
      }
    }
  });
  if (!step.split) return;
  for (const Span& word : session.words) {
    size_t begin = word.begin;
    const std::string_view text = session.text.substr(0, word.end);
    for (size_t at = text.find(step.replacement, begin); at != std::string_view::npos;
         at = text.find(step.replacement, at + step.replacement.size())) {
      keep(session, {begin, at});
      begin = at;
    }
    keep(session, {begin, word.end});
  }
  take(session);
}

}  // namespace

void PreTokenizer::split(std::string_view text, bool is_first, Session& session) const {
  session.text = text;
  session.words.clear();
  if (!text.empty()) session.words.push_back({0, text.size()});
  session.next.clear();
  session.matcher.begin_text(text.size());
  for (const PreTokenizerStep& step : steps) {
    std::visit([&](const auto& each) { run(each, is_first, session); }, step);
  }
}

}  // namespace skein::bpe
