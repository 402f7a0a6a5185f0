// The words of any bytes: none is empty, and words are words of themselves, but for numbers that a
// mark or an invisible character divided.
#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "skein/prepare/dedup/hashing/words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto words_of = [](std::string_view of) {
    std::vector<std::string> words;
    skein::WordHasher().for_each_word(of, [&](std::string_view word) {
      if (word.empty()) std::abort();
      words.emplace_back(word);
      const auto both_zero = [](char a, char b) { return a == '0' && b == '0'; };
      words.back().erase(std::unique(words.back().begin(), words.back().end(), both_zero),
                         words.back().end());
    });
    return words;
  };
  const std::vector<std::string> words = words_of(text);
  std::string joined;
  for (const std::string& word : words) joined += word + "\n";
  if (words_of(joined) != words) std::abort();
  return 0;
}
