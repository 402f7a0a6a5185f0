// A classifier of two languages, trained as fastText's own program does.
#pragma once

#include <fasttext/fasttext.h>

#include <fstream>
#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein::test {

// Writes FOLDER/model.bin. `more` are options of fastText, which replace those here; `finish` may
// change the model before it is saved.
template <class Finish>
fs::path train_classifier(const fs::path& folder, const std::vector<std::string>& more,
                          Finish&& finish) {
  std::ofstream lines(folder / "lines.txt");
  for (int i = 0; i < 200; ++i) {
    lines << "__label__en the river was frozen and we walked to the mill with a lamp\n"
          << "__label__de der fluss war gefroren und wir gingen mit einer lampe zur muehle\n";
  }
  lines.close();
  std::vector<std::string> options = {"fasttext",  "supervised",
                                      "-input",    (folder / "lines.txt").string(),
                                      "-output",   (folder / "model").string(),
                                      "-dim",      "8",
                                      "-epoch",    "20",
                                      "-thread",   "1",
                                      "-minCount", "1",
                                      "-verbose",  "0",
                                      "-loss",     "softmax",
                                      "-lr",       "0.5"};
  options.insert(options.end(), more.begin(), more.end());
  fasttext::Args args;
  args.parseArgs(options);
  fasttext::FastText model;
  model.train(args);
  finish(model, args);
  model.saveModel((folder / "model.bin").string());
  return folder / "model.bin";
}

inline fs::path train_classifier(const fs::path& folder,
                                 const std::vector<std::string>& more = {}) {
  return train_classifier(folder, more, [](fasttext::FastText&, const fasttext::Args&) {});
}

}  // namespace skein::test
