#include "skein/bpe/unicode/properties.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>

namespace skein::bpe {
namespace {

// clang-format off
enum Category : uint8_t {
  kLu, kLl, kLt, kLm, kLo, kMn, kMc, kMe, kNd, kNl, kNo, kPc, kPd, kPs, kPe, kPi, kPf, kPo, kSm,
  kSc, kSk, kSo, kZs, kZl, kZp, kCc, kCf, kCo, kCs, kCn
};
constexpr std::array<std::array<const char*, 2>, 30> kCategoryNames = {{
    {"lu", "uppercaseletter"}, {"ll", "lowercaseletter"}, {"lt", "titlecaseletter"},
    {"lm", "modifierletter"}, {"lo", "otherletter"}, {"mn", "nonspacingmark"},
    {"mc", "spacingmark"}, {"me", "enclosingmark"}, {"nd", "decimalnumber"},
    {"nl", "letternumber"}, {"no", "othernumber"}, {"pc", "connectorpunctuation"},
    {"pd", "dashpunctuation"}, {"ps", "openpunctuation"}, {"pe", "closepunctuation"},
    {"pi", "initialpunctuation"}, {"pf", "finalpunctuation"}, {"po", "otherpunctuation"},
    {"sm", "mathsymbol"}, {"sc", "currencysymbol"}, {"sk", "modifiersymbol"},
    {"so", "othersymbol"}, {"zs", "spaceseparator"}, {"zl", "lineseparator"},
    {"zp", "paragraphseparator"}, {"cc", "control"}, {"cf", "format"}, {"co", "privateuse"},
    {"cs", "surrogate"}, {"cn", "unassigned"}}};
constexpr const char* kGroupNames[][2] = {{"l", "letter"}, {"m", "mark"}, {"n", "number"},
    {"p", "punctuation"}, {"s", "symbol"}, {"z", "separator"}, {"c", "other"}};
// clang-format on

struct CategoryRun {
  char32_t first;
  Category category;  // up to the next run
};
constexpr CategoryRun kCategoryRuns[] = {
#include "skein/bpe/unicode/categories.inc"
};

struct SetRange {
  const char* name;
  char32_t first, last;
};
constexpr SetRange kSets[] = {
#include "skein/bpe/unicode/sets.inc"
};

std::string plain(std::string_view name) {
  std::string letters;
  for (const char c : name) {
    if (c != ' ' && c != '_' && c != '-') {
      letters.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
    }
  }
  return letters;
}

using Sets = std::map<std::string, CodePoints, std::less<>>;

CodePoints category(const Sets& sets, std::string_view name) { return sets.find(name)->second; }

Sets all_sets() {
  std::array<std::vector<CodePoints::Range>, kCategoryNames.size()> ranges;
  for (size_t i = 0; i < std::size(kCategoryRuns); ++i) {
    const bool is_last = i + 1 == std::size(kCategoryRuns);
    ranges.at(kCategoryRuns[i].category)
        .emplace_back(kCategoryRuns[i].first,
                      is_last ? CodePoints::kLast : kCategoryRuns[i + 1].first - 1);
  }
  Sets sets;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const CodePoints set = CodePoints::of(std::move(ranges[i]));
    for (const char* const name : kCategoryNames[i]) sets[name] = set;
    for (const auto& [letter, name] : kGroupNames) {
      if (kCategoryNames[i][0][0] != *letter) continue;
      sets[letter].add(set);
      sets[name].add(set);
    }
  }
  std::map<std::string, std::vector<CodePoints::Range>> named;
  for (const SetRange& range : kSets) named[range.name].emplace_back(range.first, range.last);
  const auto differs = [&](const char* name) { return CodePoints::of(named.at(name)); };
  CodePoints word = category(sets, "l");
  for (const char* const other : {"m", "nd", "pc"}) word.add(category(sets, other));
  word = word.either(differs("Word"));
  const CodePoints added_word = word.either(differs("AddedWord"));
  const CodePoints numeric = category(sets, "n").either(differs("Numeric"));
  const CodePoints punctuation = category(sets, "p").either(differs("Punct"));
  const CodePoints normal = differs("Normal");
  for (const char* const name : {"Word", "AddedWord", "Numeric", "Punct", "Normal"}) {
    named.erase(name);
  }
  for (auto& [name, its_ranges] : named) sets[plain(name)] = CodePoints::of(its_ranges);
  // Names that no property may have.
  sets["\\w"] = word;
  sets["\\added"] = added_word;
  sets["\\numeric"] = numeric;
  sets["\\punct"] = punctuation;
  sets["\\normal"] = normal;
  sets["\\s"] = category(sets, "z");
  sets["\\s"].add(CodePoints{{0x9, 0xd}, {0x85, 0x85}});
  return sets;
}

const Sets& sets() {
  static const Sets all = all_sets();
  return all;
}

}  // namespace

const CodePoints* unicode_property(std::string_view name) {
  const auto found = sets().find(plain(name));
  return found == sets().end() || found->first[0] == '\\' ? nullptr : &found->second;
}

const CodePoints& unicode_spaces() { return sets().find("\\s")->second; }
const CodePoints& unicode_word() { return sets().find("\\w")->second; }
const CodePoints& unicode_numeric() { return sets().find("\\numeric")->second; }
const CodePoints& unicode_punctuation() { return sets().find("\\punct")->second; }
const CodePoints& unicode_added_word() { return sets().find("\\added")->second; }
const CodePoints& unicode_normal() { return sets().find("\\normal")->second; }

}  // namespace skein::bpe
