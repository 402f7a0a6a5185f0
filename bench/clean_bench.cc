// How fast one core judges documents, and what the rules of cleaning say of given ones.
//
//   clean_bench IN [--rounds N] [--set RULE=VALUE]...     JSON: seconds of each round, what is kept
//   clean_bench IN --judge OUT [--set RULE=VALUE]...      decisions, for someone else to compare
//   clean_bench IN --words OUT                            the words of each document, the same way
//   clean_bench IN --language-model FILE [--language en]...    languages alone: speed, what is kept
//   clean_bench IN --language-model FILE --with-rules...       languages, and then the rules
//   clean_bench IN --language-model FILE --judge OUT [--language en]...    languages alone
//   clean_bench IN --language-model FILE --languages OUT                   their probabilities
//
// IN holds documents, each a uint32 of how many bytes and then these. OUT has two such entries for
// each: the rule that drops it or nothing, and the text that is left; or its words, a line each; or
// its languages with their probabilities, a line each.
#include <fmt/format.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <cstring>
#include <fstream>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/prepare/clean/filters/document_judge.h"
#include "skein/prepare/clean/language/language.h"

namespace skein {
namespace {

// The time that a core spent on this thread: others may run on it, too.
double thread_seconds() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<std::string_view> read_documents(std::string_view input) {
  std::vector<std::string_view> documents;
  for (size_t at = 0; at + 4 <= input.size();) {
    uint32_t size = 0;
    std::memcpy(&size, &input[at], 4);
    documents.push_back(input.substr(at + 4, size));
    at += 4 + size;
  }
  return documents;
}

void write_entry(std::ofstream& out, std::string_view text) {
  const auto size = static_cast<uint32_t>(text.size());
  out.write(reinterpret_cast<const char*>(&size), 4);
  out.write(text.data(), static_cast<int64_t>(text.size()));
}

// `judge_one` gives the Decision on a document.
template <class Judge>
void judge(const std::vector<std::string_view>& documents, const std::string& path,
           Judge&& judge_one) {
  std::ofstream out(path, std::ios::binary);
  for (const std::string_view document : documents) {
    const DocumentJudge::Decision decision = judge_one(document);
    write_entry(out, decision.rule ? info(*decision.rule).name : "");
    write_entry(out, decision.rule ? "" : decision.text);
  }
}

void write_words(const std::vector<std::string_view>& documents, const std::string& path) {
  DocumentWords words;
  std::ofstream out(path, std::ios::binary);
  std::string lines;
  for (const std::string_view document : documents) {
    words.read(document);
    lines.clear();
    for (const Word& word : words.words()) {
      if (!word.is_space) lines.append(words.word(word)) += '\n';
    }
    write_entry(out, lines);
  }
}

void write_languages(const std::vector<std::string_view>& documents, LanguageDetector& detector,
                     const std::string& path) {
  std::ofstream out(path, std::ios::binary);
  for (const std::string_view document : documents) {
    std::string lines;
    for (const auto& [language, probability] : detector.predict(document)) {
      lines += fmt::format("{} {}\n", language, probability);
    }
    write_entry(out, lines);
  }
}

template <class Judge>
void measure(const std::vector<std::string_view>& documents, int rounds, Judge&& judge_one) {
  std::string seconds;
  size_t num_kept = 0, num_bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    num_kept = num_bytes = 0;
    const double start = thread_seconds();
    for (const std::string_view document : documents) {
      num_bytes += document.size();
      num_kept += !judge_one(document).rule;
    }
    seconds += fmt::format("{}{:.4f}", round > 0 ? ", " : "", thread_seconds() - start);
  }
  fmt::print("{{\"bytes\": {}, \"documents\": {}, \"kept\": {}, \"seconds\": [{}]}}\n", num_bytes,
             documents.size(), num_kept, seconds);
}

struct Options {
  std::string in, decisions, words, language_model, languages;
  std::vector<std::string> settings, wanted = {"en"};
  int rounds = 1;
  bool with_rules = false;
};

void run(const Options& options) {
  CleanRules rules;
  for (const std::string& setting : options.settings) rules.set(setting);
  const std::string input = read_file(options.in, int64_t{1} << 40);
  const std::vector<std::string_view> documents = read_documents(input);
  const auto ask = [&](auto&& judge_one) {
    if (options.decisions.empty()) return measure(documents, options.rounds, judge_one);
    judge(documents, options.decisions, judge_one);
  };
  if (!options.words.empty()) return write_words(documents, options.words);
  if (options.language_model.empty()) {
    DocumentJudge judge(rules);
    return ask([&](std::string_view document) { return judge.judge(document); });
  }
  LanguageDetector detector(std::make_shared<const LanguageModel>(options.language_model));
  if (!options.languages.empty()) return write_languages(documents, detector, options.languages);
  DocumentJudge judge(rules);
  ask([&](std::string_view document) {
    DocumentJudge::Decision decision;
    if (!detector.is_in(document, options.wanted, rules.threshold(Rule::kLanguage))) {
      decision.rule = Rule::kLanguage;
    } else if (options.with_rules) {
      decision = judge.judge(document);
    }
    return decision;
  });
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("How fast one core judges documents");
  skein::Options options;
  app.add_option("IN", options.in)->required();
  app.add_option("--judge", options.decisions);
  app.add_option("--words", options.words);
  app.add_option("--language-model", options.language_model);
  app.add_option("--language", options.wanted);
  app.add_option("--languages", options.languages)->needs("--language-model");
  app.add_flag("--with-rules", options.with_rules)->needs("--language-model");
  app.add_option("--set", options.settings);
  app.add_option("--rounds", options.rounds);
  CLI11_PARSE(app, argc, argv);
  try {
    skein::run(options);
  } catch (const skein::Error& error) {
    fmt::print(stderr, "clean_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
