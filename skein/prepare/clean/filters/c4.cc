#include <cstring>

#include "skein/prepare/clean/filters/document_filters.h"

namespace skein {
namespace {

// `text` in small letters as far as phrases of ASCII need it: the Kelvin sign is a k as well.
void to_lower(std::string_view text, std::string& lower) {
  constexpr std::string_view kKelvin = "\u212a";
  lower.assign(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  for (size_t at = 0; (at = lower.find(kKelvin, at)) != std::string::npos; ++at) {
    lower.replace(at, kKelvin.size(), "k");
  }
}

// A phrase, and the place of its least frequent letter, which is looked for first.
struct Phrase {
  std::string_view text;
  size_t rare;

  bool is_in(std::string_view line) const {
    if (line.size() < text.size()) return false;
    const char* at = line.data() + rare;
    const char* const end = line.data() + line.size() - (text.size() - rare - 1);
    while (at < end) {
      at = static_cast<const char*>(std::memchr(at, text[rare], static_cast<size_t>(end - at)));
      if (at == nullptr) return false;
      if (std::memcmp(at - rare, text.data(), text.size()) == 0) return true;
      ++at;
    }
    return false;
  }
};

constexpr Phrase kLoremIpsumPhrase = {"lorem ipsum", 4};
constexpr Phrase kJavascriptPhrase = {"javascript", 0};
constexpr Phrase kPolicyPhrases[] = {{"cookie policy", 3},   {"uses cookies", 8},
                                     {"use of cookies", 10}, {"use cookies", 7},
                                     {"privacy policy", 3},  {"terms of use", 7}};

// Without [edit], [citation needed] and numbers in brackets; false: there are none.
bool remove_citations(std::string_view line, const CharacterReader& reader, std::string& changed) {
  size_t begin = line.find('[');
  if (begin == std::string_view::npos) return false;
  const char* const end = line.data() + line.size();
  changed.clear();
  size_t kept = 0;  // all before has been looked at
  for (; begin != std::string_view::npos; begin = line.find('[', begin)) {
    const std::string_view rest = line.substr(begin);
    size_t size = 0;
    for (const std::string_view note : {"[edit]", "[citation needed]"}) {
      if (rest.starts_with(note)) size = note.size();
    }
    if (size == 0) {
      const char* at = rest.data() + 1;
      while (at < end) {
        const CharacterReader::ClassifiedCharacter character = reader.first(at, end);
        if ((character.classes & character::kDecimal) == 0) break;
        at += character.size;
      }
      if (at < end && *at == ']') size = static_cast<size_t>(at + 1 - rest.data());
    }
    if (size == 0) {
      ++begin;
      continue;
    }
    changed += line.substr(kept, begin - kept);
    begin += size;
    kept = begin;
  }
  if (kept == 0) return false;
  changed += line.substr(kept);
  return true;
}

int64_t count_words(const std::vector<Word>& words, size_t first, size_t last) {
  const auto begin = words.begin();
  return std::count_if(begin + static_cast<ptrdiff_t>(first), begin + static_cast<ptrdiff_t>(last),
                       [](const Word& word) { return !word.is_space; });
}

bool has_terminal_punctuation(std::string_view line) {
  return !line.empty() && std::string_view(".?!\"'").find(line.back()) != std::string_view::npos &&
         !line.ends_with("...");
}

}  // namespace

C4Result C4::judge(const DocumentWords& document) {
  C4Result result;
  text_.clear();
  num_lines_ = num_words_ = num_sentences_ = 0;
  for (const TextLine& line : document.lines()) {
    const std::string_view text = document.text().substr(line.begin, line.end - line.begin);
    const LineResult judged = judge_line(text, line);
    result.rule = judged.dropped;
    if (result.rule) return result;
    if (judged.cut) {
      if (!text.empty())
        result.cut.push_back({*judged.cut, text, static_cast<int64_t>(text.size())});
      continue;
    }
    if (judged.is_changed) {
      const auto num_bytes = static_cast<int64_t>(text.size() - judged.text.size());
      result.cut.push_back({Rule::kCitations, text, num_bytes});
    }
    keep_line(document, line, judged);
  }
  if (rules_.is_on(Rule::kTooFewSentences) &&
      static_cast<double>(num_sentences_) < rules_.threshold(Rule::kTooFewSentences)) {
    result.rule = Rule::kTooFewSentences;
    return result;
  }
  result.text = reader_.strip(text_);
  result.num_words = num_words_;
  return result;
}

C4::LineResult C4::judge_line(std::string_view text, const TextLine& line) {
  LineResult result;
  result.text = text;
  const auto cut = [&](Rule rule) {
    result.cut = rule;
    return result;
  };
  const auto drop = [&](Rule rule) {
    result.dropped = rule;
    return result;
  };
  if (rules_.is_on(Rule::kTooLongWord) &&
      static_cast<double>(line.longest_run) > rules_.threshold(Rule::kTooLongWord)) {
    return cut(Rule::kTooLongWord);
  }
  if (rules_.is_on(Rule::kCitations) && remove_citations(text, reader_, changed_)) {
    result.is_changed = true;
    result.text = changed_;
  }
  if (rules_.is_on(Rule::kNoTerminalPunctuation) && !has_terminal_punctuation(result.text)) {
    return cut(Rule::kNoTerminalPunctuation);
  }
  if (rules_.is_on(Rule::kTooFewWords) &&
      static_cast<double>(line.num_runs) < rules_.threshold(Rule::kTooFewWords)) {
    return cut(Rule::kTooFewWords);
  }
  to_lower(result.text, lower_);
  if (rules_.is_on(Rule::kLoremIpsum) && kLoremIpsumPhrase.is_in(lower_)) {
    return drop(Rule::kLoremIpsum);
  }
  if (rules_.is_on(Rule::kJavascript) && kJavascriptPhrase.is_in(lower_)) {
    return cut(Rule::kJavascript);
  }
  if (rules_.is_on(Rule::kCurlyBracket) && result.text.find('{') != std::string_view::npos) {
    return drop(Rule::kCurlyBracket);
  }
  if (rules_.is_on(Rule::kPolicy)) {
    for (const Phrase& phrase : kPolicyPhrases) {
      if (phrase.is_in(lower_)) return cut(Rule::kPolicy);
    }
  }
  return result;
}

void C4::keep_line(const DocumentWords& document, const TextLine& line, const LineResult& result) {
  if (num_lines_++ > 0) text_ += '\n';
  text_ += result.text;
  if (!result.is_changed) {
    const size_t first = line.first_word, last = line.last_word;
    num_sentences_ += count_sentences(document.text(), document.words(), first, last, reader_);
    num_words_ += count_words(document.words(), first, last);
    return;
  }
  words_.clear();
  splitter_.split(result.text, 0, result.text.size(), words_);
  // White space at the end, which a citation leaves behind, is a word there.
  const size_t end = reader_.strip_end(result.text).size();
  if (!words_.empty() && result.text.substr(end) != " " && end < result.text.size()) {
    words_.push_back({static_cast<uint32_t>(end), static_cast<uint32_t>(result.text.size()), true});
  }
  num_sentences_ += count_sentences(result.text, words_, 0, words_.size(), reader_);
  num_words_ += count_words(words_, 0, words_.size());
}

}  // namespace skein
