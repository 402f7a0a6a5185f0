// What differs between the configurations of two starts of a run.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "skein/base/files/file.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/toml.h"
#include "skein/config/evaluate_fields.h"
#include "skein/config/fields.h"
#include "skein/config/run/identity.h"
#include "skein/model/decoder.h"

namespace skein {
namespace {

// Nothing: values of the key are not compared here.
std::optional<ChangeKind> kind_of(const ConfigField& field) {
  switch (field.change.then) {
    case OnChange::kTell:
      return ChangeKind::kSetting;
    case OnChange::kAsk:
    case OnChange::kOtherState:
      return ChangeKind::kMeaning;
    case OnChange::kRefuse:
      return ChangeKind::kImpossible;
    case OnChange::kIgnore:
    case OnChange::kByContent:
    case OnChange::kByContentAsk:
      break;
  }
  return std::nullopt;
}

// A value as TOML text; paths are made absolute.
std::string value_text(const toml::node& node, const ConfigField& field) {
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  if (const auto* value = node.as_integer()) return fmt::format("{}", value->get());
  if (const auto* value = node.as_floating_point()) return fmt::format("{}", value->get());
  const std::string text = node.value_or(std::string());
  return json_text(Json(field.limits.is_path ? absolute_path(text) : text));
}

class Comparer {
 public:
  Comparer(const Json& before, const Json& after, const std::string& what)
      : before_(before), after_(after), what_(what) {}

  Comparison compare() {
    compare_settings();
    compare_model();
    compare_tokenizer();
    compare_training_text();
    compare_validation_text();
    compare_evaluations();
    return std::move(result_);
  }

 private:
  static const Json* find(const Json& json, const char* key) {
    const auto found = json.is_object() ? json.find(key) : json.end();
    return found == json.end() || found->is_null() ? nullptr : &*found;
  }
  static const Json* content(const Json& configuration, const char* key) {
    const Json* all = find(configuration, "content");
    return all == nullptr ? nullptr : find(*all, key);
  }

  void add(std::string key, std::string before, std::string after, ChangeKind kind) {
    if (before == after) return;
    result_.changes.push_back({std::move(key), std::move(before), std::move(after), kind});
  }

  toml::table table(const Json& configuration, const std::string& what) const {
    const Json* text = find(configuration, "config");
    if (text == nullptr || !text->is_string()) return {};
    try {
      return parse_toml(text->get_ref<const std::string&>(), what + " (configuration.config)");
    } catch (const Error& error) {
      throw Error(ErrorCode::kInvalid, error.what());
    }
  }

  // A key that only one side has was added or removed between two versions of skein, so it is
  // skipped, unless it is known what there was (ConfigChange::before).
  void compare_settings() {
    const toml::table old = table(before_, what_), now = table(after_, "this run");
    if (old.empty()) result_.not_compared.emplace_back("the configuration");
    for (const ConfigField& field : config_fields()) {
      const std::optional<ChangeKind> kind = kind_of(field);
      if (!kind) continue;
      const auto old_value = old[field.section][field.key],
                 new_value = now[field.section][field.key];
      const std::string key = fmt::format("{}.{}", field.section, field.key);
      const std::string none(field.change.before);
      if (!old.empty() && !(old_value && new_value) && !none.empty()) {
        const auto text = [&](const auto& value) {
          return value ? value_text(*value.node(), field) : none;
        };
        add(key, text(old_value), text(new_value), *kind);
      }
      if (!old_value || !new_value) continue;
      add(key, value_text(*old_value.node(), field), value_text(*new_value.node(), field), *kind);
    }
  }

  void compare_model() {
    const Json* old = find(before_, "model");
    if (old == nullptr) {
      result_.not_compared.emplace_back("the model");
      return;
    }
    const auto changes = compare_models(parse_decoder(*old, what_ + " (configuration.model)"),
                                        parse_decoder(after_.at("model"), "this run"), true);
    result_.changes.insert(result_.changes.end(), changes.begin(), changes.end());
  }

  // "/data/tokenizer (4096 tokens, xxh3 90ab12cd)"
  static std::string tokenizer_text(const Json& configuration) {
    const Json& found = *content(configuration, "tokenizer");
    const Json* path = find(configuration, "tokenizer");
    return fmt::format(
        "{} ({} tokens, xxh3 {})",
        path != nullptr && path->is_string() ? path->get<std::string>() : "a tokenizer",
        number(found, "tokens"), hash(found).substr(0, 8));
  }

  void compare_tokenizer() {
    const Json* old = content(before_, "tokenizer");
    if (old == nullptr) {
      result_.not_compared.emplace_back("the tokenizer");
    } else if (hash(*old) != hash(*content(after_, "tokenizer"))) {
      add("data.tokenizer", tokenizer_text(before_), tokenizer_text(after_), ChangeKind::kMeaning);
    }
  }

  std::string corpus_path(const Json& configuration, const char* key) const {
    return absolute_path(table(configuration, what_)["data"][key].value_or(std::string()));
  }
  // "8410 documents, 123675431 bytes, xxh3 90ab12cd", and where they count ", loss_spans 56ef78ab"
  static std::string identity_text(const Json& content, bool with_spans) {
    const std::string spans = with_spans ? hash(content, kSpansHash) : "";
    return fmt::format("{} documents, {} bytes, xxh3 {}{}{}", number(content, "documents"),
                       number(content, "bytes"), hash(content).substr(0, 8),
                       spans.empty() ? "" : ", loss_spans ", spans.substr(0, 8));
  }
  std::string corpus_text(const Json& configuration, const char* key,
                          bool with_spans = false) const {
    const Json* found = content(configuration, key);
    if (found == nullptr) return "none";
    return fmt::format("{} ({})", corpus_path(configuration, key),
                       identity_text(*found, with_spans));
  }

  // "web 0.7 (8410 documents, 123675431 bytes, xxh3 90ab12cd), code 0.3 (…)"
  static std::string sources_text(const Json& sources, bool with_spans) {
    std::string text;
    for (const Json& source : sources) {
      text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", source.value("name", ""),
                          source.value("weight", 0.0), identity_text(source, with_spans));
    }
    return text;
  }

  // Whether both record the spans that they train on. Neither does with data.loss_on = "all"; a
  // checkpoint of an older skein does not, so that they cannot be compared.
  bool can_compare_spans(const Json& old, const Json& now) {
    const bool here = !hash(now, kSpansHash).empty(), there = !hash(old, kSpansHash).empty();
    if (here && !there && table(before_, what_)["data"]["loss_on"] == "completion") {
      result_.not_compared.emplace_back("the loss spans of the corpus");
    }
    return here && there;
  }

  // Positions in a source are only valid in a text of its size; a source may come and go.
  void compare_sources(const Json* old, const Json* now) {
    const Json none = Json::array();
    ChangeKind kind = ChangeKind::kMeaning;
    for (const Json& before : old == nullptr ? none : *old) {
      for (const Json& after : now == nullptr ? none : *now) {
        const bool other_size = number(before, "documents") != number(after, "documents") ||
                                number(before, "bytes") != number(after, "bytes");
        if (before.value("name", "") == after.value("name", "") && other_size) {
          kind = ChangeKind::kImpossible;
        }
      }
    }
    const auto first = [](const Json& configuration, const Json* sources) {
      const Json* content_of = sources == nullptr ? content(configuration, "train") : nullptr;
      return sources != nullptr && !sources->empty() ? sources->front()
             : content_of != nullptr                 ? *content_of
                                                     : Json();
    };
    const bool with_spans = can_compare_spans(first(before_, old), first(after_, now));
    const auto text = [&](const Json& configuration, const Json* sources) {
      return sources == nullptr ? corpus_text(configuration, "train", with_spans)
                                : sources_text(*sources, with_spans);
    };
    add("data.source", text(before_, old), text(after_, now), kind);
  }

  void compare_training_text() {
    const Json* old_sources = content(before_, "sources");
    const Json* new_sources = content(after_, "sources");
    if (old_sources != nullptr || new_sources != nullptr) {
      return compare_sources(old_sources, new_sources);
    }
    const Json* old = content(before_, "train");
    const Json* now = content(after_, "train");
    if (old == nullptr) {
      result_.not_compared.emplace_back("the text of the corpus");
    } else if (hash(*old) != hash(*now)) {
      // The lanes' positions are only valid in a text of that size.
      const bool same_size = number(*old, "documents") == number(*now, "documents") &&
                             number(*old, "bytes") == number(*now, "bytes");
      add("data.train", corpus_text(before_, "train"), corpus_text(after_, "train"),
          same_size ? ChangeKind::kMeaning : ChangeKind::kImpossible);
    } else if (can_compare_spans(*old, *now) && hash(*old, kSpansHash) != hash(*now, kSpansHash)) {
      add("data.train", corpus_text(before_, "train", true), corpus_text(after_, "train", true),
          ChangeKind::kMeaning);
    }
  }

  // A change of the validation text is only a setting, since training does not depend on it.
  void compare_validation_text() {
    const Json* old = content(before_, "validation");
    const Json* now = content(after_, "validation");
    // An older checkpoint without hashes.
    if (content(before_, "train") == nullptr && content(before_, "sources") == nullptr) {
      add("data.validation", corpus_path(before_, "validation"), corpus_path(after_, "validation"),
          ChangeKind::kSetting);
    } else if ((old == nullptr) != (now == nullptr) || (old != nullptr && differ(*old, *now))) {
      add("data.validation", corpus_text(before_, "validation", true),
          corpus_text(after_, "validation", true), ChangeKind::kSetting);
    }
  }

  // "hellaswag every 500 steps", of each [[evaluate]]; training does not depend on it.
  std::string evaluations(const Json& configuration) const {
    const toml::table all = table(configuration, what_);
    const toml::node* found = all.get("evaluate");
    if (found == nullptr) return "none";
    std::vector<std::string> said;
    for (const EvaluateConfig& one : read_evaluate_tables(*found, what_)) {
      said.push_back(fmt::format(
          "{}{}{}{}", one.tasks,
          one.every_steps > 0 ? fmt::format(" every {} steps", one.every_steps) : " at the end",
          one.limit > 0 ? fmt::format(", {} documents", one.limit) : "",
          one.num_fewshot >= 0 ? fmt::format(", {} examples", one.num_fewshot) : ""));
    }
    return said.empty() ? "none" : fmt::format("{}", fmt::join(said, "; "));
  }
  void compare_evaluations() {
    add("evaluate", evaluations(before_), evaluations(after_), ChangeKind::kSetting);
  }
  static bool differ(const Json& old, const Json& now) {
    const std::string there = hash(old, kSpansHash), here = hash(now, kSpansHash);
    return hash(old) != hash(now) || (!there.empty() && !here.empty() && there != here);
  }

  static std::string hash(const Json& content, const char* key = "xxh3_128") {
    const Json* found = find(content, key);
    return found != nullptr && found->is_string() ? found->get<std::string>() : "";
  }
  static int64_t number(const Json& content, const char* key) {
    const Json* found = find(content, key);
    return found != nullptr && found->is_number_integer() ? found->get<int64_t>() : -1;
  }

  static constexpr const char* kSpansHash = "loss_spans_xxh3_128";

  const Json& before_;
  const Json& after_;
  const std::string& what_;
  Comparison result_;
};

}  // namespace

Comparison compare_configurations(const Json& before, const Json& after, const std::string& what) {
  return Comparer(before, after, what).compare();
}

namespace {

bool tables_agree(const DecoderConfig& a, const DecoderConfig& b) {
  constexpr int64_t kPositions = 2;
  const std::vector<DecoderTable> of_a = decoder_tables(a, kPositions),
                                  of_b = decoder_tables(b, kPositions);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [](const DecoderTable& one, const DecoderTable& other) {
                      return one.values(kPositions) == other.values(kPositions);
                    });
}

}  // namespace

std::vector<Change> compare_models(const DecoderConfig& before, const DecoderConfig& after,
                                   bool in_export) {
  const std::vector<ParameterSpec> old_specs = parameter_specs(before),
                                   new_specs = parameter_specs(after);
  const bool same_shapes =
      std::equal(old_specs.begin(), old_specs.end(), new_specs.begin(), new_specs.end(),
                 [](const ParameterSpec& a, const ParameterSpec& b) {
                   return a.name == b.name && a.shape == b.shape;
                 });
  Json old = to_hugging_face_json(before, DType::kF32),
       now = to_hugging_face_json(after, DType::kF32);
  for (const auto& [key, value] : now.items()) old.emplace(key, nullptr);  // keys of another family
  constexpr std::array<std::string_view, 6> kExported = {"bos_token_id",
                                                         "eos_token_id",
                                                         "pad_token_id",
                                                         "initializer_range",
                                                         "max_position_embeddings",
                                                         "original_max_position_embeddings"};
  // Whatever a window is, no row is longer: only what is exported changes.
  constexpr std::array<std::string_view, 4> kWindow = {"sliding_window", "use_sliding_window",
                                                       "max_window_layers", "layer_types"};
  const auto is_in = [](const auto& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  // Some rotary embeddings follow from max_position_embeddings.
  constexpr std::array kOfTables = {"head_dim", "rope_scaling", "rope_theta"};
  const bool same_tables = tables_agree(before, after) ||
                           std::any_of(kOfTables.begin(), kOfTables.end(), [&](const char* key) {
                             return old.value(key, Json()) != now.value(key, Json());
                           });
  const bool same_window = before.window.tokens == after.window.tokens;
  std::vector<Change> changes;
  for (const auto& [key, value] : old.items()) {
    const Json after_value = now.value(key, Json());
    if (value == after_value) continue;
    const bool of_window = is_in(kWindow, key);
    const bool of_tables = key == "max_position_embeddings" && !same_tables;
    const bool exported = (is_in(kExported, key) && !of_tables) || of_window;
    if ((exported && !in_export) || (of_window && same_window)) continue;
    changes.push_back({"model." + key, json_text(value), json_text(after_value),
                       exported      ? ChangeKind::kSetting
                       : same_shapes ? ChangeKind::kMeaning
                                     : ChangeKind::kImpossible});
  }
  return changes;
}

}  // namespace skein
