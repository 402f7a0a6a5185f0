#include "skein/prepare/clean/filters/document_words.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "skein/base/numbers/hash.h"
#include "skein/prepare/clean/words/hash_counts.h"

namespace skein {
namespace {

// A bit for each; 0: another word.
int stop_word_bit(std::string_view word) {
  switch (word.size()) {
    case 2:
      return word == "be" ? 1 : word == "to" ? 2 : word == "of" ? 4 : 0;
    case 3:
      return word == "the" ? 8 : word == "and" ? 16 : 0;
    case 4:
      return word == "that" ? 32 : word == "have" ? 64 : word == "with" ? 128 : 0;
    default:
      return 0;
  }
}

// `word` may be read up to DocumentWords::kPrefixBytes, whatever its size.
uint64_t hash_word(const char* word, uint32_t size) {
  if (size > DocumentWords::kPrefixBytes) return hash_name({word, size});
  uint64_t first = 0, second = 0;
  std::memcpy(&first, word, 8);
  std::memcpy(&second, word + 8, 8);
  if (size <= 8) {
    first &= size == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * size) - 1;
    second = 0;
  } else if (size < 16) {
    second &= (uint64_t{1} << 8 * (size - 8)) - 1;
  }
  return mix_hashes(first, second + size);
}

// The bytes of the line break at `at`; 0: there is none.
size_t line_break_size(std::string_view text, size_t at) {
  const auto byte = static_cast<uint8_t>(text[at]);
  if (byte == '\r') return at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
  if (byte == '\n' || byte == 0x0b || byte == 0x0c || (byte >= 0x1c && byte <= 0x1e)) return 1;
  if (byte == 0xc2 && text.substr(at).starts_with("\u0085")) return 2;
  if (byte == 0xe2) {
    const std::string_view rest = text.substr(at);
    if (rest.starts_with("\u2028") || rest.starts_with("\u2029")) return 3;
  }
  return 0;
}

// Whether a byte may begin a line break.
bool may_break(char c) {
  const auto byte = static_cast<uint8_t>(c);
  return byte < 0x20 || byte == 0xc2 || byte == 0xe2;
}

}  // namespace

void DocumentWords::read(std::string_view text) {
  text_ = text;
  num_characters_ = count_characters(text);
  read_lines();
  measure_words();
}

void DocumentWords::read_lines() {
  lines_.clear();
  words_.clear();
  for (size_t begin = 0; begin < text_.size();) {
    size_t end = begin, break_size = 0;
    for (; end < text_.size(); ++end) {
      if (!may_break(text_[end])) continue;
      break_size = line_break_size(text_, end);
      if (break_size > 0) break;
    }
    TextLine line;
    line.first_word = static_cast<uint32_t>(words_.size());
    const EnglishWords::LineRuns split = splitter_.split(text_, begin, end, words_);
    line.last_word = static_cast<uint32_t>(words_.size());
    line.begin = split.num_runs > 0 ? words_[line.first_word].begin : static_cast<uint32_t>(begin);
    line.end = split.num_runs > 0 ? words_.back().end : static_cast<uint32_t>(begin);
    line.num_runs = split.num_runs;
    line.longest_run = split.longest_run;
    lines_.push_back(line);
    begin = end + break_size;
  }
}

void DocumentWords::measure_words() {
  measured_.clear();
  joined_.resize(text_.size() + DocumentWords::kPrefixBytes);
  num_joined_ = 0;
  longest_word_ = num_words_with_letter_ = num_plain_words_ = num_plain_characters_ = 0;
  int stop_words = 0;
  for (const Word& word : words_) {
    if (word.is_space) continue;
    const char* at = text_.data() + word.begin;
    const char* const end = text_.data() + word.end;
    MeasuredWord measured{0, num_joined_, 0};
    uint32_t any = 0, all = ~0U;
    while (at < end) {
      const CharacterReader::ClassifiedCharacter character = reader_.first(at, end);
      any |= character.classes;
      all &= character.classes;
      ++measured.num_characters;
      at += character.size;
    }
    longest_word_ = std::max<int64_t>(longest_word_, measured.num_characters);
    num_words_with_letter_ += (any & character::kAlphabetic) != 0;
    if ((all & character::kSymbol) == 0) {
      ++num_plain_words_;
      num_plain_characters_ += measured.num_characters;
    }
    stop_words |= stop_word_bit(this->word(word));
    std::memcpy(&joined_[num_joined_], text_.data() + word.begin, word.size());
    measured.hash = hash_word(&joined_[num_joined_], word.size());
    num_joined_ += word.size();
    measured_.push_back(measured);
  }
  num_stop_words_ = std::popcount(static_cast<unsigned>(stop_words));
}

uint64_t DocumentWords::prefix_hash(size_t word) const {
  uint64_t first = 0, second = 0;
  std::memcpy(&first, &joined_[measured_[word].begin], 8);
  std::memcpy(&second, &joined_[measured_[word].begin + 8], 8);
  return mix_hashes(first, second);
}

int64_t count_sentences(std::string_view text, const std::vector<Word>& words, size_t first,
                        size_t last, const CharacterReader& reader) {
  int64_t num_sentences = 1;  // of a text without words as well
  bool has_ended = false;
  for (size_t i = first; i < last; ++i) {
    const char* at = text.data() + words[i].begin;
    const char* const end = text.data() + words[i].end;
    const CharacterReader::ClassifiedCharacter character = reader.first(at, end);
    if (at + character.size == end && (character.classes & character::kSentenceEnd) != 0) {
      has_ended = true;
      continue;
    }
    if (!has_ended) continue;
    bool is_punctuation = true;
    while (at < end && is_punctuation) {
      const CharacterReader::ClassifiedCharacter next = reader.first(at, end);
      is_punctuation = (next.classes & character::kPunctuation) != 0;
      at += next.size;
    }
    if (is_punctuation) continue;
    ++num_sentences;
    has_ended = false;
  }
  return num_sentences;
}

}  // namespace skein
