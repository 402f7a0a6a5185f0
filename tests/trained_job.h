// A tiny job with a finished run of 4 steps, to go on with: as it was, changed, or elsewhere.
#pragma once

#include <string>
#include <vector>

#include "tests/testing.h"

namespace skein {

// The job, with a run of 4 steps in fp32.
struct TrainedJob : TinyJob {
  TrainedJob() { trained("run", with({"run.steps=4"})); }

  static Overrides with(Overrides more, const char* precision = "fp32") {
    more.insert(more.begin(), {std::string("precision.mode=") + precision, "run.steps=6"});
    return more;
  }
  // A fresh copy of the run, to go on with.
  void copy_run(const std::string& name) const {
    fs::remove_all(run(name));
    fs::copy(run("run"), run(name), fs::copy_options::recursive);
  }
  // The same text, but for one word of the last document.
  fs::path other_corpus() const {
    const fs::path path = folder / "other.arrow";
    if (fs::exists(path)) return path;
    std::string text = read_file(folder / "documents.jsonl");
    const size_t at = text.rfind("\"}") - 3;
    text[at] = text[at] == 'z' ? 'y' : 'z';
    std::ofstream(folder / "other.jsonl") << text;
    must({"data", "ingest", "--out", path.string(), (folder / "other.jsonl").string()});
    return path;
  }
  fs::path other_tokenizer() const {
    const fs::path path = folder / "other_tokenizer";
    if (fs::exists(path)) return path;
    std::ofstream(folder / "words.txt") << std::string(read_file(corpus()), 4000, 60000);
    fs::path words = folder / "words.jsonl";
    std::ofstream stream(words);
    for (int i = 0; i < 2000; ++i)
      stream << "{\"text\": \"quick brown foxes jump over " << i << "\"}\n";
    stream.close();
    must({"data", "ingest", "--out", (folder / "words.arrow").string(), words.string()});
    must({"data", "tokenizer", "--vocab-size", "320", "--out", path.string(),
          (folder / "words.arrow").string()});
    return path;
  }
};

}  // namespace skein
