// How fast one core judges documents, and what the rules of cleaning say of given ones.
//
//   clean_bench IN [--rounds N] [--set RULE=VALUE]...     JSON: seconds of each round, what is kept
//   clean_bench IN --judge OUT [--set RULE=VALUE]...      decisions, for someone else to compare
//   clean_bench IN --words OUT                            the words of each document, the same way
//
// IN holds documents, each a uint32 of how many bytes and then these. OUT has two such entries for
// each: the rule that drops it or nothing, and the text that is left; or its words, a line each.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstring>
#include <fstream>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/prepare/clean/document_judge.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

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

void judge(const std::vector<std::string_view>& documents, const CleanRules& rules,
           const std::string& path) {
  DocumentJudge judge(rules);
  std::ofstream out(path, std::ios::binary);
  for (const std::string_view document : documents) {
    const DocumentJudge::Decision decision = judge.judge(document);
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

void measure(const std::vector<std::string_view>& documents, const CleanRules& rules, int rounds) {
  DocumentJudge judge(rules);
  std::string seconds;
  size_t num_kept = 0, num_bytes = 0;
  for (int round = 0; round < rounds; ++round) {
    num_kept = num_bytes = 0;
    const auto start = Clock::now();
    for (const std::string_view document : documents) {
      num_bytes += document.size();
      num_kept += !judge.judge(document).rule;
    }
    seconds += fmt::format("{}{:.4f}", round > 0 ? ", " : "",
                           std::chrono::duration<double>(Clock::now() - start).count());
  }
  fmt::print("{{\"bytes\": {}, \"documents\": {}, \"kept\": {}, \"seconds\": [{}]}}\n", num_bytes,
             documents.size(), num_kept, seconds);
}

}  // namespace
}  // namespace skein

int main(int argc, char** argv) {
  CLI::App app("How fast one core judges documents");
  std::string in, decisions, words;
  std::vector<std::string> settings;
  int rounds = 1;
  app.add_option("IN", in)->required();
  app.add_option("--judge", decisions);
  app.add_option("--words", words);
  app.add_option("--set", settings);
  app.add_option("--rounds", rounds);
  CLI11_PARSE(app, argc, argv);
  try {
    skein::CleanRules rules;
    for (const std::string& setting : settings) rules.set(setting);
    const std::string input = skein::read_file(in, int64_t{1} << 40);
    const std::vector<std::string_view> documents = skein::read_documents(input);
    if (!decisions.empty()) {
      skein::judge(documents, rules, decisions);
    } else if (!words.empty()) {
      skein::write_words(documents, words);
    } else {
      skein::measure(documents, rules, rounds);
    }
  } catch (const skein::Error& error) {
    fmt::print(stderr, "clean_bench: {}\n", error.what());
    return 1;
  }
  return 0;
}
