#include "skein/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/hub_name.h"
#include "skein/base/text/toml.h"
#include "skein/config/evaluate_fields.h"
#include "skein/config/fields.h"
#include "skein/config/length.h"
#include "skein/config/model_key_value.h"
#include "skein/config/other_words.h"
#include "skein/config/sweep_folder.h"
#include "skein/config/written_names.h"
#include "skein/objects/place.h"

namespace skein {
namespace {

bool in_limits(double value, const ConfigLimits& limits) {
  const bool low = limits.above_minimum ? value <= limits.minimum : value < limits.minimum;
  const bool high = limits.below_maximum ? value >= limits.maximum : value > limits.maximum;
  return std::isfinite(value) && !low && !high;
}

// Stores a TOML value in a field; false where its type or its value does not fit.
class Store {
 public:
  Store(const toml::node& node, const ConfigLimits& limits) : node(node), limits(limits) {}
  const toml::node& node;
  const ConfigLimits& limits;

  bool operator()(bool* target) const {
    const auto* value = node.as_boolean();
    if (value) *target = value->get();
    return value != nullptr;
  }
  bool operator()(int64_t* target) const {
    const std::optional<int64_t> value = whole_number(node);
    if (!value || !in_limits(static_cast<double>(*value), limits)) return false;
    *target = *value;
    return true;
  }
  bool operator()(double* target) const {
    if (!node.is_integer() && !node.is_floating_point()) return false;
    const double value = *node.value<double>();
    if (in_limits(value, limits)) *target = value;
    return in_limits(value, limits);
  }
  bool operator()(std::string* target) const {
    const auto* value = node.as_string();
    const auto& choices = limits.choices;
    if (!value || (!choices.empty() &&
                   std::find(choices.begin(), choices.end(), value->get()) == choices.end())) {
      return false;
    }
    *target = value->get();
    return true;
  }
  bool operator()(std::vector<DataSource>* target) const {
    const toml::array* tables = node.as_array();
    if (tables == nullptr) return false;
    std::vector<DataSource> sources;
    for (const toml::node& table : *tables) {
      if (!why_no_source(table).empty()) return false;
      store_source(*table.as_table(), sources.emplace_back());
    }
    *target = std::move(sources);
    return true;
  }

 private:
  static void store_source(const toml::table& table, DataSource& source) {
    source.path = table["path"].value_or(std::string());
    source.name = table["name"].value_or(std::string());
    source.weight = table["weight"].value_or(1.0);
  }
};

// Reads a document, then the overrides, into a Config.
class ConfigReader {
 public:
  // What a file says of the keys of `overrides` does not count, and need not mean anything here.
  explicit ConfigReader(std::span<const std::string> overrides) {
    for (const std::string& text : overrides) overridden_.insert(text.substr(0, text.find('=')));
  }

  void read_document(std::string_view text, const std::string& name) {
    const toml::table document = parse_toml(text, name);
    for (const auto& [section, node] : document) {
      const std::string where = fmt::format("{}:{}", name, section.source().begin.line);
      if (section.str() == "evaluate") {
        if (!overridden_.contains("evaluate")) config_.evaluate = read_evaluate_tables(node, where);
        continue;
      }
      const toml::table* table = node.as_table();
      if (!table) {
        const OtherWord* word = find_other_word(section.str());
        fail(ErrorCode::kUsage, "{}: {} stands outside a section: {}", where, section.str(),
             word == nullptr ? "expected [section] lines before" : explain_other_word(*word, ""));
      }
      std::vector<std::string> keys;
      for (const auto& [key, value] : *table) keys.emplace_back(key.str());
      check_section(section.str(), where, keys);
      for (const auto& [key, value] : *table) {
        const std::string key_where = fmt::format("{}:{}", name, key.source().begin.line);
        store(section.str(), key.str(), find_key(section.str(), key.str(), key_where), value,
              key_where);
        note_length(section.str(), key.str(), key_where, /*is_override=*/false);
      }
    }
    overridden_.clear();  // what follows are the overrides
    take_floor_as_derived(document);
  }

  // `text`: "section.key=value". Shells remove quotes, so a string may stand without them.
  void read_override(const std::string& text) {
    const std::string where = "--set " + text;
    const size_t dot = text.find('.');
    const size_t equals = text.find('=');
    if (text.starts_with("evaluate=")) {
      config_.evaluate = read_evaluate_tables(*parse_toml(text, where).get("evaluate"), where);
      return;
    }
    if (equals == std::string::npos || dot == std::string::npos || dot > equals) {
      fail(ErrorCode::kUsage, "{}: expected section.key=value, such as run.steps=100{}", where,
           advice_on_word(std::string_view(text).substr(0, equals)));
    }
    const std::string section = text.substr(0, dot);
    const std::string key = text.substr(dot + 1, equals - dot - 1);
    const std::string value = text.substr(equals + 1);
    const KnownKey known = find_key(section, key, where);
    const bool quoted = value.starts_with('"') || value.starts_with('\'');
    if (is_string(known) && !quoted) {
      store(section, key, known, toml::value<std::string>(value), where);
      return;
    }
    Result<toml::table> parsed = try_run([&] { return parse_toml("value = " + value, where); });
    const toml::table document = parsed.ok() ? std::move(parsed).value() : toml::table();
    if (document.size() != 1) {
      fail(ErrorCode::kUsage, "{}: {} is not a TOML value: expected {}", where, value,
           describe_expected(known));
    }
    store(section, key, known, document.begin()->second, where);
    note_length(section, key, where, /*is_override=*/true);
    // The ratio goes before a floor that the file sets, but not before one of --set.
    if (section == "optimizer" && key == "min_learning_rate") floor_is_override_ = true;
    if (section == "optimizer" && key == "min_learning_rate_ratio" && !floor_is_override_) {
      config_.origin.floor_given = false;
    }
  }

  Config finish() {
    const bool named_otherwise =
        !config_.model.inline_keys.empty() || !config_.model.init_from.empty();
    if (named_otherwise && !hf_config_given_) config_.model.hf_config.clear();
    for (auto* sources : {&config_.data.source, &config_.data.validation_set}) {
      for (DataSource& source : *sources) {
        if (source.name.empty()) source.name = name_of(source.path);
      }
    }
    if (config_.run.steps == 0) config_.run.steps = steps_that_are_not_said();
    fill_run_length(config_);
    return std::move(config_);
  }

 private:
  // "web" of data/web.arrow and of data/web/.
  static std::string name_of(const fs::path& path) {
    const fs::path file = path.has_filename() ? path : path.parent_path();
    return file.extension() == ".arrow" ? file.stem().string() : file.filename().string();
  }

  // A file that names both keys, as the config.toml of a run folder does, and the floor that
  // follows from the ratio, does not set it: it follows the learning_rate of a --set.
  void take_floor_as_derived(const toml::table& document) {
    const OptimizerConfig& optimizer = config_.optimizer;
    if (document["optimizer"]["min_learning_rate_ratio"] &&
        optimizer.min_learning_rate == learning_rate_floor(optimizer)) {
      config_.origin.floor_given = false;
    }
  }

  // The default where another key says how long the run is.
  int64_t steps_that_are_not_said() const {
    if (config_.run.epochs > 0 || config_.run.tokens > 0) return RunConfig().steps;
    fail(
        ErrorCode::kUsage,
        "[run] steps is 0, which says nothing, and neither epochs nor tokens says how long the run "
        "is: expected one of them, or steps from 1");
  }

  // Only one key may set the length of a run. An override replaces the file's key. A value of 0
  // means not set, since the config.toml in a run folder holds all three keys.
  void note_length(std::string_view section, std::string_view key, const std::string& where,
                   bool is_override) {
    if (section != "run" || (key != "steps" && key != "epochs" && key != "tokens")) return;
    RunConfig& run = config_.run;
    const bool says = key == "steps"    ? run.steps > 0
                      : key == "epochs" ? run.epochs > 0
                                        : run.tokens > 0;
    if (!says) return;
    if (!length_key_.empty() && length_key_ != key && length_is_override_ == is_override) {
      fail(ErrorCode::kUsage,
           "{}: run.{} beside run.{} ({}): expected one of steps, epochs and tokens, which say how "
           "long the run is",
           where, key, length_key_, length_where_);
    }
    const RunConfig defaults;
    if (key != "steps") run.steps = defaults.steps;
    if (key != "epochs") run.epochs = 0;
    if (key != "tokens") run.tokens = 0;
    length_key_ = key;
    length_where_ = where;
    length_is_override_ = is_override;
  }

  bool is_string(const KnownKey& known) {
    if (known.model_key) return known.model_key->kind == ModelKey::Kind::kString;
    return std::holds_alternative<std::string*>(known.field->value(config_));
  }

  void store(std::string_view section, std::string_view key, const KnownKey& known,
             const toml::node& node, const std::string& where) {
    bool stored = false;
    if (known.field) {
      stored = std::visit(Store(node, known.field->limits), known.field->value(config_));
      for (const ConfigPath& at : stored ? config_paths(config_) : std::vector<ConfigPath>()) {
        if (at.key != fmt::format("{}.{}", section, key)) continue;
        if (overridden_.contains(at.key)) continue;
        const Place place = Place::parse(
            *at.path, fmt::format("{}: {} in [{}]", where, key, section), known.field->limits.use);
        const bool is_whole = place.is_object() || place.path().is_absolute();
        if (place.has_variables() && is_whole) {
          config_.origin.places[{at.key, absolute_path(place.text())}] = place.written();
        }
        *at.path = place.text();
      }
      if (section == "model" && key == "hf_config") hf_config_given_ = true;
      if (section == "model" && key == "init_std") config_.origin.init_std_given = true;
      if (section == "optimizer" && key == "min_learning_rate") config_.origin.floor_given = true;
      if (section == "optimizer" && key == "warmup_steps") config_.origin.warmup_given = true;
      if (section == "optimizer" && key == "decay_steps") config_.origin.decay_given = true;
    } else {
      std::optional<Json> json = model_key_value(node, known.model_key->kind);
      stored = json.has_value();
      if (stored) config_.model.inline_keys[std::string(key)] = *std::move(json);
    }
    const bool is_sources = known.field && std::holds_alternative<std::vector<DataSource>*>(
                                               known.field->value(config_));
    if (!stored && is_sources && node.is_array()) {
      for (size_t i = 0; i < node.as_array()->size(); ++i) {
        const std::string why = why_no_source(node.as_array()->at(i));
        if (why.empty()) continue;
        fail(ErrorCode::kUsage, "{}: [[{}.{}]], number {}: {}", where, section, key, i + 1, why);
      }
    }
    if (!stored && section == "data" && node.is_array() &&
        (key == "train" || key == "validation")) {
      fail(
          ErrorCode::kUsage,
          "{}: {} in [data] is a list: expected one path in quotes, of a file or a folder; several "
          "are tables, [[data.{}]] with a path each",
          where, key, key == "train" ? "source" : "validation_set");
    }
    if (!stored) {
      fail(ErrorCode::kUsage, "{}: {} in [{}] is {}: expected {}{}", where, key, section,
           describe_found(node), describe_expected(known),
           explain_other_value(fmt::format("{}.{}", section, key), scalar_text(node)));
    }
  }

  Config config_;
  bool hf_config_given_ = false;
  std::string length_key_, length_where_;
  bool length_is_override_ = false;
  bool floor_is_override_ = false;
  std::set<std::string> overridden_;  // keys of --set, while the file is read
};

}  // namespace

bool store_value(const toml::node& node, const ConfigLimits& limits, const ConfigValue& value) {
  return std::visit(Store(node, limits), value);
}

Config parse_config(std::string_view text, const std::string& name,
                    std::span<const std::string> overrides) {
  ConfigReader reader(overrides);
  reader.read_document(text, name);
  for (const std::string& text_override : overrides) reader.read_override(text_override);
  return reader.finish();
}

namespace {

// Replaces {config_dir} by the folder of `file` in every path.
void put_in_config_dir(Config& config, const fs::path& file) {
  const fs::path folder = file.has_parent_path() ? file.parent_path() : fs::path(".");
  for (const auto& [key, place] : config_paths(config)) {
    std::string& path = *place;
    const size_t at = path.find(kConfigDir);
    if (at == std::string::npos) continue;
    const std::string rest = path.substr(kConfigDir.size());
    if (at != 0 || (!rest.empty() && rest.front() != '/')) {
      fail(ErrorCode::kUsage,
           "{}: {} is \"{}\": expected {} at the beginning of the path, and then /", file.string(),
           key, path, kConfigDir);
    }
    path =
        rest.size() <= 1 ? folder.string() : (folder / rest.substr(1)).lexically_normal().string();
  }
}

}  // namespace

std::string config_file_of(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;  // reading it says why
  const fs::path file = fs::path(path) / "config.toml";
  if (is_there(file)) return file.string();
  fail(
      ErrorCode::kUsage,
      "{} is a folder without a config.toml: expected a configuration file, or the folder of a run "
      "that has begun{}",
      path, sweep_advice(path));
}

Config load_config(const std::string& path, std::span<const std::string> overrides, ConfigUse use) {
  constexpr int64_t kMaxBytes = 1 << 20;
  std::string text;
  try {
    text = read_file(path, kMaxBytes);
  } catch (const Error& error) {
    fail(ErrorCode::kUsage, "configuration: {}", error.what());
  }
  Config config = parse_config(text, path, overrides);
  put_in_config_dir(config, path);
  check_utf8(config, path);
  check_config(config, path, use);
  return config;
}

Json hf_config_json(const ModelConfig& model, const Json& otherwise) {
  if (!model.hf_config.empty() && !fs::exists(model.hf_config)) {
    const bool is_default = model.hf_config == ModelConfig().hf_config;
    fail(
        ErrorCode::kUsage,
        "model.hf_config is '{}'{}: no such file{}: expected a Hugging Face config.json{}{}",
        model.hf_config, is_default ? ", which stands for a key that is not set" : "",
        fs::path(model.hf_config).is_relative()
            ? fmt::format(", counted from the working folder {}; in a file, {}/… counts from where "
                          "it lies",
                          fs::current_path().string(), kConfigDir)
            : "",
        is_default ? ", or sizes such as hidden_size in [model]" : "",
        is_default ? "" : hub_advice(model.hf_config));
  }
  Json json = model.hf_config.empty() ? otherwise : read_json(model.hf_config);
  if (!json.is_object()) {
    fail(ErrorCode::kInvalid, "{} holds a JSON {}: expected an object, a Hugging Face config.json",
         model.hf_config, json.type_name());
  }
  json.update(model.inline_keys);
  return json;
}

LearningRateSchedule learning_rate_schedule(const OptimizerConfig& optimizer) {
  const LearningRateDecay decay = optimizer.schedule == "cosine"   ? LearningRateDecay::kCosine
                                  : optimizer.schedule == "linear" ? LearningRateDecay::kLinear
                                                                   : LearningRateDecay::kConstant;
  return {decay,
          optimizer.learning_rate,
          optimizer.min_learning_rate,
          optimizer.warmup_steps,
          optimizer.constant_steps,
          optimizer.decay_steps};
}

std::string absolute_path(const std::string& path) {
  if (path.empty() || path.find("://") != std::string::npos) return path;
  const fs::path normal = fs::absolute(path).lexically_normal();
  return (normal.has_filename() ? normal : normal.parent_path()).string();
}

std::string checkpoint_dir(const Config& config) {
  return config.checkpoint.dir.empty() ? config.run.dir + "/checkpoints" : config.checkpoint.dir;
}

}  // namespace skein
