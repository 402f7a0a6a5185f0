// The rules that text is cleaned by, and how one run sets them. A rule is one row of rules.def.
//
// Errors   Error{kUsage} for settings of rules that are not there
// Source   Gopher: Rae et al. 2021, arxiv.org/abs/2112.11446, table A1 and section A.1.
//          C4: Raffel et al. 2020, jmlr.org/papers/v21/20-074.html, section 2.2.
//          FineWeb: Penedo et al. 2024, arxiv.org/abs/2406.17557, section 3.6
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "skein/base/text/json.h"

namespace skein {

enum class Filter : uint8_t { kLanguage, kGopherRepetition, kGopherQuality, kC4, kFineWeb };
const char* name_of(Filter filter);  // "gopher_quality"

enum class RuleKind : uint8_t {
  kDrops,         // documents
  kCutsLines,     // of a document
  kChangesLines,  // of a document
  kMeasures,      // nothing: a number that other rules use
};

enum class Rule : uint8_t {
#define CLEANING_RULE(id, name, filter, kind, threshold, is_on, meaning) id,
#include "skein/prepare/clean/filters/rules.def"
#undef CLEANING_RULE
};

inline constexpr size_t kNumRules = 0
#define CLEANING_RULE(id, name, filter, kind, threshold, is_on, meaning) +1
#include "skein/prepare/clean/filters/rules.def"
#undef CLEANING_RULE
    ;

struct RuleInfo {
  Rule rule;
  const char* name;
  Filter filter;
  RuleKind kind;
  double threshold;
  bool is_on;  // by default
  const char* meaning;
};

std::span<const RuleInfo> cleaning_rules();  // [rule]
const RuleInfo& info(Rule rule);

// What a rule took: documents or lines, and their bytes.
struct RuleCount {
  int64_t num_taken = 0;
  int64_t num_bytes = 0;
};
struct RuleCounts : std::array<RuleCount, kNumRules> {
  RuleCount& of(Rule rule) { return (*this)[static_cast<size_t>(rule)]; }
  const RuleCount& of(Rule rule) const { return (*this)[static_cast<size_t>(rule)]; }
  void add(const RuleCounts& other);
};

class CleanRules {
 public:
  CleanRules();  // as FineWeb set them

  bool is_on(Rule rule) const { return settings_[static_cast<size_t>(rule)].is_on; }
  double threshold(Rule rule) const { return settings_[static_cast<size_t>(rule)].threshold; }
  // Whether any rule of the filter is.
  bool is_on(Filter filter) const;

  // "50", "on" of one without a threshold, "off".
  std::string value_text(Rule rule) const;

  // "gopher_short_doc=20", "javascript=off", "c4=off": a rule or all of a filter.
  void set(std::string_view setting);

  Json to_json() const;  // all that a decision follows from

 private:
  struct RuleSetting {
    bool is_on;
    double threshold;
  };
  std::array<RuleSetting, kNumRules> settings_{};
};

}  // namespace skein
