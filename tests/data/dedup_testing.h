// What the tests of deduplication share: made documents, and a folder to deduplicate them in.
#pragma once

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "skein/prepare/dedup/dedup.h"
#include "tests/data/ingest_testing.h"

namespace skein {

using Texts = std::multiset<std::string>;

class DedupTest : public Ingest {
 protected:
  Documents deduped(const std::vector<fs::path>& inputs, DedupOptions options = {}) {
    options.overwrite = true;
    report_ = dedup(inputs, out(), options);
    return documents(out());
  }
  fs::path write_documents(const std::string& name, const Documents& documents) {
    std::string lines;
    for (const std::string& text : documents) lines += Json{{"text", text}}.dump() + "\n";
    return write(name, lines);
  }
  DedupReport report_;
};

// Letters, so that numbers are not all the same word.
inline std::string spelled(uint64_t number) {
  std::string word;
  for (; number > 0; number /= 26) word += static_cast<char>('a' + number % 26);
  return word;
}

inline std::vector<std::string> random_words(std::mt19937_64& random, size_t count) {
  std::vector<std::string> words;
  for (size_t i = 0; i < count; ++i) words.push_back(spelled(100 + random() % 100000));
  return words;
}

inline std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

// Clusters of copies with a few words changed, dropped or added, equal copies, and others.
inline Documents made_documents(uint64_t seed, size_t num_clusters) {
  std::mt19937_64 random(seed);
  Documents documents;
  for (size_t cluster = 0; cluster < num_clusters; ++cluster) {
    const std::vector<std::string> original = random_words(random, 60 + random() % 200);
    documents.push_back(joined(original));
    if (random() % 3 == 0) documents.push_back(joined(original));
    for (size_t copy = random() % 4; copy > 0; --copy) {
      std::vector<std::string> words = original;
      for (size_t change = random() % 12; change > 0; --change) {
        words[random() % words.size()] = spelled(100 + random() % 100000);
      }
      words.resize(words.size() - random() % 5);
      documents.push_back(joined(words));
    }
  }
  std::shuffle(documents.begin(), documents.end(), random);
  return documents;
}

}  // namespace skein
