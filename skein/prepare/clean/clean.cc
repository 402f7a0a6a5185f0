#include "skein/prepare/clean/clean.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/utf8.h"
#include "skein/prepare/clean/filters/document_judge.h"
#include "skein/prepare/clean/language/language.h"
#include "skein/prepare/clean/repair_text.h"

namespace skein {
namespace {

constexpr size_t kExcerptBytes = 600;

// The beginning of `text`, not inside a character.
std::string_view excerpt_of(std::string_view text) {
  return text.substr(0, utf8::character_start(text, std::min(text.size(), kExcerptBytes)));
}

class CleanWorker : public PieceWorker {
 public:
  CleanWorker(std::shared_ptr<const CleanOptions> options,
              std::shared_ptr<const LanguageModel> language)
      : options_(std::move(options)), judge_(options_->rules) {
    if (language && options_->rules.is_on(Rule::kLanguage)) language_.emplace(std::move(language));
  }

  void add(const InputDocument& document, PieceOutput& out) override {
    ++report_.num_documents;
    report_.num_bytes += static_cast<int64_t>(document.text.size());
    std::string_view text = document.text;
    if (options_->repairs) {
      text = repair_text(text, repaired_);
      report_.num_repaired += text.data() != document.text.data();
    }
    DocumentJudge::Decision decision;
    if (has_other_language(text)) {
      decision.rule = Rule::kLanguage;
    } else {
      decision = judge_.judge(text);
    }
    if (!decision.rule && decision.text.empty()) decision.rule = Rule::kEmpty;
    if (decision.rule) {
      note(*decision.rule, text, document);
      return;
    }
    for (const CutLine& line : decision.cut) note(line, document);
    text = replace_personal_data(decision.text, options_->removes, report_.replaced, replaced_);
    ++report_.num_kept;
    report_.num_kept_bytes += static_cast<int64_t>(text.size());
    out.append(text, document.origin);
  }

  Json take_counters() override {
    Json counters = report_.to_counters();
    report_ = {};
    return counters;
  }

 private:
  bool has_other_language(std::string_view text) {
    return language_ &&
           !language_->is_in(text, options_->languages, options_->rules.threshold(Rule::kLanguage));
  }

  void note(Rule rule, std::string_view text, const InputDocument& document) {
    RuleCount& taken = report_.taken.of(rule);
    ++taken.num_taken;
    taken.num_bytes += static_cast<int64_t>(text.size());
    report_.add_example(rule, text, document.origin);
  }
  void note(const CutLine& line, const InputDocument& document) {
    RuleCount& taken = report_.taken.of(line.rule);
    ++taken.num_taken;
    taken.num_bytes += line.num_bytes;
    report_.add_example(line.rule, line.text, document.origin);
  }

  std::shared_ptr<const CleanOptions> options_;
  std::optional<LanguageDetector> language_;
  DocumentJudge judge_;
  std::string repaired_, replaced_;
  CleanReport report_;
};

void keep_smallest(std::vector<CleanExample>& examples) {
  std::sort(examples.begin(), examples.end(),
            [](const CleanExample& a, const CleanExample& b) { return a.hash < b.hash; });
  if (examples.size() > CleanReport::kNumExamples) examples.resize(CleanReport::kNumExamples);
}

}  // namespace

IngestStep cleaning_step(const CleanOptions& options) {
  std::shared_ptr<const LanguageModel> language;
  Json key = {{"step", "clean"},
              {"rules", options.rules.to_json()},
              {"repairs", options.repairs},
              {"emails", options.removes.emails},
              {"ips", options.removes.ips},
              {"phones", options.removes.phones}};
  if (!options.language_model.empty()) {
    language = std::make_shared<LanguageModel>(options.language_model);
    language->check(options.languages);
    const MappedFile model(options.language_model);
    key["model"] = xxh3_128_hex(model.bytes());
    key["languages"] = options.languages;
  }
  const auto shared = std::make_shared<const CleanOptions>(options);
  return {[shared, language] { return std::make_unique<CleanWorker>(shared, language); }, key,
          "empty or dropped"};
}

void CleanReport::add_example(Rule rule, std::string_view text, const Origin& origin) {
  const std::string place = fmt::format("{} {}", origin.source, origin.record);
  const std::string hash = fmt::format("{:016x}{:016x}", hash_name(text), hash_name(place));
  std::vector<CleanExample>& those = examples[info(rule).name];
  if (those.size() == kNumExamples && hash >= those.back().hash) return;
  those.push_back(
      {hash, std::string(excerpt_of(text)), replace_invalid_utf8(origin.source), origin.record});
  keep_smallest(those);
}

void CleanReport::add(const CleanReport& other) {
  num_documents += other.num_documents;
  num_bytes += other.num_bytes;
  num_kept += other.num_kept;
  num_kept_bytes += other.num_kept_bytes;
  num_repaired += other.num_repaired;
  replaced.num_emails += other.replaced.num_emails;
  replaced.num_ips += other.replaced.num_ips;
  replaced.num_phones += other.replaced.num_phones;
  taken.add(other.taken);
  for (const auto& [rule, more] : other.examples) {
    std::vector<CleanExample>& those = examples[rule];
    those.insert(those.end(), more.begin(), more.end());
    keep_smallest(those);
  }
}

Json CleanReport::to_counters() const {
  Json json = {{"documents", num_documents}, {"bytes", num_bytes},
               {"kept", num_kept},           {"kept_bytes", num_kept_bytes},
               {"repaired", num_repaired},   {"emails", replaced.num_emails},
               {"ips", replaced.num_ips},    {"phones", replaced.num_phones},
               {"taken", Json::object()},    {"examples", Json::object()}};
  for (const RuleInfo& rule : cleaning_rules()) {
    const RuleCount& count = taken.of(rule.rule);
    if (count.num_taken > 0) json["taken"][rule.name] = {count.num_taken, count.num_bytes};
  }
  for (const auto& [rule, those] : examples) {
    for (const CleanExample& example : those) {
      json["examples"][rule].push_back(
          {example.hash, example.excerpt, example.source, example.record});
    }
  }
  return json;
}

CleanReport CleanReport::from_counters(const Json& json) {
  CleanReport report;
  report.num_documents = json.at("documents");
  report.num_bytes = json.at("bytes");
  report.num_kept = json.at("kept");
  report.num_kept_bytes = json.at("kept_bytes");
  report.num_repaired = json.at("repaired");
  report.replaced = {json.at("emails"), json.at("ips"), json.at("phones")};
  for (const RuleInfo& rule : cleaning_rules()) {
    if (!json.at("taken").contains(rule.name)) continue;
    const Json& count = json.at("taken").at(rule.name);
    report.taken.of(rule.rule) = {count.at(0), count.at(1)};
  }
  for (const auto& [rule, those] : json.at("examples").items()) {
    for (const Json& example : those) {
      report.examples[rule].push_back({example.at(0), example.at(1), example.at(2), example.at(3)});
    }
  }
  return report;
}

}  // namespace skein
