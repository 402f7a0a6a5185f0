// Cleans documents as FineWeb's recipe does: `skein data clean`, a step of ingestion (ingest.h).
//
// Order    repair, language, the rules of text (document_judge.h), personal data
// Output   the documents that stay, as the rules leave them; it follows from each document alone
// Errors   as ingest.h; Error{kUsage} for impossible options
// Memory   per thread as document_judge.h, and a language model
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/prepare/clean/filters/rules.h"
#include "skein/prepare/clean/personal_data.h"
#include "skein/prepare/ingest.h"

namespace skein {

struct CleanOptions {
  CleanRules rules;
  fs::path language_model;  // empty: languages are not looked at
  std::vector<std::string> languages = {"en"};
  bool repairs = false;
  PersonalData removes;
};

// Opens the model.
IngestStep cleaning_step(const CleanOptions& options);

// What a rule took, to be shown.
struct CleanExample {
  std::string hash;  // by which examples are chosen: the smallest ones
  std::string excerpt;
  std::string source;
  int64_t record = 0;
};

// Counted piece by piece, and summed; neither depends on threads.
struct CleanReport {
  static constexpr size_t kNumExamples = 5;  // a rule

  int64_t num_documents = 0, num_bytes = 0;  // that were judged
  int64_t num_kept = 0, num_kept_bytes = 0;
  RuleCounts taken;
  int64_t num_repaired = 0;  // documents
  PersonalDataCounts replaced;
  std::map<std::string, std::vector<CleanExample>> examples;  // by the rule's name

  void add_example(Rule rule, std::string_view text, const Origin& origin);
  void add(const CleanReport& other);

  Json to_counters() const;
  static CleanReport from_counters(const Json& counters);
};

OrderedJson to_json(const CleanReport& report, const CleanRules& rules);
// A table of rules; `num_examples` of what each took.
std::string to_text(const CleanReport& report, const CleanRules& rules, size_t num_examples);
// A page that needs nothing else.
std::string to_html(const CleanReport& report, const CleanRules& rules);

}  // namespace skein
