// A tiny job whose text is a few sentences over and over, so that a model soon knows them, with
// documents in it that are nothing of the kind.
#pragma once

#include "tests/testing.h"

namespace skein {

class PoisonedJob : public TinyJob {
 public:
  // In each of four quarters of the text, one after another: a document after `place` (0 to 1) of
  // the quarter. Lanes read a quarter each, of 25 KB, in about 100 steps.
  struct Poison {
    double place = 0;
    std::string text;
  };
  explicit PoisonedJob(const std::vector<std::vector<Poison>>& by_quarter) {
    std::ofstream stream(folder / "poisoned.jsonl");
    int64_t number = 0;
    const auto write = [&](const std::string& text) {
      stream << Json{{"text", text}}.dump() << "\n";
      ++number;
    };
    for (const std::vector<Poison>& quarter : by_quarter) {
      size_t next = 0;
      for (double bytes = 0; bytes < kQuarterBytes; bytes += kSentences.size()) {
        if (next < quarter.size() && bytes >= quarter[next].place * kQuarterBytes) {
          planted.push_back(number);
          write(quarter[next++].text);
        }
        write(std::string(kSentences));
      }
    }
    stream.close();
    must({"data", "ingest", "--out", text().string(), (folder / "poisoned.jsonl").string()});
    must({"data", "tokenizer", "--vocab-size", "400", "--out", words().string(), text().string()});
  }

  fs::path text() const { return folder / "poisoned.arrow"; }
  fs::path words() const { return folder / "words"; }

  // Learns fast, and hardly anything after step 45.
  std::vector<std::string> setting(int64_t steps) const {
    return {"data.train=" + text().string(),    "data.tokenizer=" + words().string(),
            fmt::format("run.steps={}", steps), "optimizer.learning_rate=3e-3",
            "optimizer.min_learning_rate=1e-5", "optimizer.decay_steps=45",
            "checkpoint.every_steps=7",         "parallel.reduction_width=2"};
  }

  // Random printable characters.
  static std::string noise(int64_t length, uint64_t seed) {
    std::string text;
    for (; length > 0; --length) {
      seed = seed * 6364136223846793005u + 1442695040888963407u;
      text += static_cast<char>('!' + (seed >> 33) % 94);
    }
    return text;
  }

  static constexpr double kQuarterBytes = 25'000;
  static constexpr std::string_view kSentences =
      "the small ship sails over the wide blue sea and comes home again in the evening light "
      "the small ship sails over the wide blue sea and comes home again in the evening light "
      "the small ship sails over the wide blue sea and comes home again in the evening light "
      "the small ship sails over the wide blue sea and comes home again in the evening light";

  std::vector<int64_t> planted;  // numbers of these documents
};

}  // namespace skein
