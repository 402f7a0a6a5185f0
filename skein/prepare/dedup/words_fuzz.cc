// The words of any bytes: none is empty, and cutting the text at a word's end changes no word.
#include <cstdlib>
#include <string>
#include <vector>

#include "skein/prepare/dedup/words.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  skein::WordHasher words;
  std::vector<std::string> found;
  words.for_each_word(text, [&](std::string_view word) {
    if (word.empty()) std::abort();
    found.emplace_back(word);
  });
  std::string joined;
  for (const std::string& word : found) joined += word + "\n";
  size_t count = 0;
  words.for_each_word(joined, [&](std::string_view word) {
    if (count >= found.size() || word != found[count++]) std::abort();
  });
  if (count != found.size()) std::abort();
  return 0;
}
