#include "skein/checkpoint/hugging_face/weight_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/files/lfs_pointer.h"
#include "skein/base/files/open_file.h"
#include "skein/base/text/foreign_keys.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/visible_text.h"

namespace skein {
namespace {

constexpr int64_t kMaxIndexBytes = int64_t{100} << 20;
constexpr int64_t kMaxShards = 10'000;

// The two formats that are read, in transformers' order.
struct WeightFormat {
  std::string_view stem, suffix;
  std::string single() const { return fmt::format("{}{}", stem, suffix); }
  std::string index() const { return fmt::format("{}{}.index.json", stem, suffix); }
};
constexpr std::array<WeightFormat, 2> kFormats = {{
    {"model", ".safetensors"},
    {"pytorch_model", ".bin"},
}};

// Files of weights that are not read, and what helps.
struct OtherFormat {
  std::string_view begin, end;  // of the name
  std::string_view advice;
};
constexpr std::array<OtherFormat, 8> kOtherFormats = {{
    {"consolidated", ".pth",
     "weights in Meta's own format. `python -m "
     "transformers.models.llama.convert_llama_weights_to_hf --input_dir FOLDER --output_dir "
     "FOLDER-hf` converts them"},
    {"consolidated", ".safetensors",
     "weights in Mistral's own format. Download the model.safetensors files that lie beside it on "
     "the Hub, or convert it with transformers' convert_mistral_weights_to_hf.py"},
    {"", ".gguf",
     "a model of llama.cpp. `python -c \"from transformers import AutoModelForCausalLM as M; "
     "M.from_pretrained('FOLDER', gguf_file='FILE').save_pretrained('FOLDER-hf')\"` converts it"},
    {"tf_model", ".h5",
     "weights of TensorFlow. Download model.safetensors or pytorch_model.bin of the model"},
    {"flax_model", ".msgpack",
     "weights of Flax. Download model.safetensors or pytorch_model.bin of the model"},
    {"", ".ckpt",
     "a training checkpoint of another program. Save its model with transformers' save_pretrained"},
    {"", ".pt",
     "a file of torch.save. Save the model with transformers' save_pretrained, or its state_dict "
     "as pytorch_model.bin"},
    {"", ".pth",
     "a file of torch.save. Save the model with transformers' save_pretrained, or its state_dict "
     "as pytorch_model.bin"},
}};

bool is_plain_file_name(const std::string& name, std::string_view suffix) {
  return name.ends_with(suffix) && name.size() < 256 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

std::vector<std::string> names_of_files(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  if (error && !is_absence(error.value())) {
    fail(errno_code(error.value()), "cannot list {}: {}", folder.string(),
         errno_text(error.value()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

struct WeightFileName {
  std::string stem;
  int64_t number = 0, total = 0;
};

std::optional<int64_t> parse_count(std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool is_count = error == std::errc() && end == digits.data() + digits.size();
  return is_count && value >= 1 && value <= kMaxShards ? std::optional(value) : std::nullopt;
}

// "model-00001-of-00002.safetensors"
std::optional<WeightFileName> parse_shard_name(std::string_view name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return std::nullopt;
  name.remove_suffix(suffix.size());
  const size_t of = name.rfind("-of-");
  const size_t dash = of == name.npos ? of : name.rfind('-', of - 1);
  if (of == name.npos || of == 0 || dash == name.npos) return std::nullopt;
  const auto number = parse_count(name.substr(dash + 1, of - dash - 1));
  const auto total = parse_count(name.substr(of + 4));
  if (!number || !total || *number > *total) return std::nullopt;
  return WeightFileName{std::string(name.substr(0, dash)), *number, *total};
}

// The first few of a list, for a message.
std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 3;
  const std::vector<std::string> first(names.begin(),
                                       names.begin() + std::min(kShown, names.size()));
  return fmt::format(
      "{}{}", fmt::join(first, ", "),
      names.size() > kShown ? fmt::format(" and {} more", names.size() - kShown) : "");
}

// Shards without their index: all of one set, or what is missing.
std::optional<WeightFiles> shards_without_index(const fs::path& folder,
                                                const std::vector<std::string>& names,
                                                const WeightFormat& format) {
  WeightFiles found;
  std::optional<WeightFileName> set;
  for (const std::string& name : names) {
    const auto shard = parse_shard_name(name, format.suffix);
    if (!shard) continue;
    if (set && (set->stem != shard->stem || set->total != shard->total)) {
      fail(ErrorCode::kInvalid,
           "{}: {} is missing, and {} and {} belong to two sets of shards: expected the index, or "
           "one set",
           folder.string(), format.index(), found.files.front(), name);
    }
    set = shard;
    found.files.push_back(name);
  }
  if (!set) return std::nullopt;
  std::vector<std::string> missing;
  for (int64_t number = 1; number <= set->total; ++number) {
    const std::string name =
        fmt::format("{}-{:05}-of-{:05}{}", set->stem, number, set->total, format.suffix);
    if (std::find(found.files.begin(), found.files.end(), name) == found.files.end()) {
      missing.push_back(name);
    }
  }
  if (!missing.empty()) {
    fail(ErrorCode::kNotFound,
         "{}: {} is missing, and so {} {} of {} shards: {}. Download the model again",
         folder.string(), format.index(), missing.size() == 1 ? "is" : "are", missing.size(),
         set->total, some_of(missing));
  }
  found.note = fmt::format("{}: {} is missing; all {} shards are there, and every tensor counts",
                           folder.string(), format.index(), set->total);
  return found;
}

WeightFiles files_of_index(const fs::path& folder, const WeightFormat& format) {
  WeightFiles found;
  found.index = format.index();
  const fs::path path = folder / found.index;
  std::vector<std::string> unknown;
  found.weight_map = parse_hugging_face_index(read_file(path, kMaxIndexBytes), path.string(),
                                              format.suffix, &unknown);
  found.note = unknown_keys_text(path.string(), unknown);
  for (const auto& [tensor, file] : found.weight_map) found.files.push_back(file);
  std::sort(found.files.begin(), found.files.end());
  found.files.erase(std::unique(found.files.begin(), found.files.end()), found.files.end());
  std::vector<std::string> missing;
  for (const std::string& file : found.files) {
    if (!fs::exists(folder / file)) missing.push_back(file);
  }
  if (missing.empty()) return found;
  fail(ErrorCode::kNotFound,
       "{}: {} of {} files that it names {} missing: {}. Download the model again, or these files",
       path.string(), missing.size(), found.files.size(), missing.size() == 1 ? "is" : "are",
       some_of(missing));
}

std::vector<std::string> files_of_weights(const std::vector<std::string>& names) {
  std::vector<std::string> weights;
  for (const std::string& name : names) {
    if (name.ends_with(".safetensors") || name.ends_with(".bin")) weights.push_back(name);
  }
  return weights;
}

void refuse_other_formats(const fs::path& folder, const std::vector<std::string>& names) {
  for (const OtherFormat& format : kOtherFormats) {
    for (const std::string& name : names) {
      if (!name.starts_with(format.begin) || !name.ends_with(format.end)) continue;
      std::string advice(format.advice);
      for (const auto& [word, value] :
           {std::pair<std::string, std::string>{"FOLDER", folder.string()}, {"FILE", name}}) {
        for (size_t at = 0; (at = advice.find(word, at)) != advice.npos; at += value.size()) {
          advice.replace(at, word.size(), value);
        }
      }
      fail(ErrorCode::kUnsupported, "{}: {} is {}", folder.string(), name, advice);
    }
  }
}

}  // namespace

std::string quoted_name(const std::string& text) {
  return ascii_json_text(Json(text.substr(0, 200)));
}

std::map<std::string, std::string> parse_hugging_face_index(std::string_view text,
                                                            const std::string& what,
                                                            std::string_view suffix,
                                                            std::vector<std::string>* unknown) {
  refuse_lfs_pointer(text.substr(0, 200), what);
  const Json json = parse_json(text, what);
  const auto weight_map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || weight_map == json.end() || !weight_map->is_object()) {
    fail(ErrorCode::kInvalid, "{}: expected an object with a key \"weight_map\", an object", what);
  }
  std::map<std::string, std::string> map;
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>(), suffix)) {
      fail(ErrorCode::kInvalid,
           "{}: weight_map {} is {}, expected the name of a {} file in the same folder", what,
           quoted_name(tensor), file.is_string() ? quoted_name(file) : file.type_name(), suffix);
    }
    map[tensor] = file.get<std::string>();
  }
  if (unknown != nullptr) *unknown = unknown_keys(ForeignJson::kWeightIndex, json);
  return map;
}

void refuse_adapter(const fs::path& folder) {
  constexpr const char* kConfig = "adapter_config.json";
  const fs::path path = folder / kConfig;
  if (!fs::is_regular_file(path)) return;
  const Json json = read_json(path.string());
  const auto text = [&](const char* key, const std::string& otherwise) {
    const bool is_text = json.is_object() && json.contains(key) && json.at(key).is_string();
    return is_text ? visible_text(json.at(key).get_ref<const std::string&>(), 200) : otherwise;
  };
  const std::string type = text("peft_type", "LORA");
  const std::string what =
      type == "LORA" ? "a LoRA adapter" : fmt::format("an adapter of PEFT ({})", type);
  const std::string name = folder.string();
  const bool is_prompt = type.find("PROMPT") != type.npos || type.find("PREFIX") != type.npos ||
                         type.find("P_TUNING") != type.npos;
  const std::string merged =
      fs::exists(folder / "model.safetensors")
          ? "; if the weights beside it hold it already, remove " + std::string(kConfig)
          : "";
  fail(ErrorCode::kUnsupported, "{}: {} of {}: {}{}", name, what,
       text("base_model_name_or_path", "a model that it does not name"),
       is_prompt ? "it trains a prompt, which cannot be merged into the model: name the model alone"
                 : fmt::format("merge it first: `python -c \"from peft import "
                               "AutoPeftModelForCausalLM as M; M.from_pretrained('{0}')"
                               ".merge_and_unload().save_pretrained('{0}-merged')\"`",
                               name),
       merged);
}

WeightFiles find_weight_files(const fs::path& folder) {
  refuse_adapter(folder);
  for (const WeightFormat& format : kFormats) {
    if (fs::exists(folder / format.single())) return {.files = {format.single()}};
    if (fs::exists(folder / format.index())) return files_of_index(folder, format);
  }
  const std::vector<std::string> names = names_of_files(folder);
  for (const WeightFormat& format : kFormats) {
    if (auto found = shards_without_index(folder, names, format)) return *std::move(found);
  }
  refuse_other_formats(folder, names);
  const std::vector<std::string> weights = files_of_weights(names);
  fail(ErrorCode::kNotFound,
       "{} is not a Hugging Face model folder with weights: expected {} or {}, or their index, in "
       "it{}",
       folder.string(), kFormats[0].single(), kFormats[1].single(),
       weights.empty()
           ? ""
           : fmt::format("; found {}: if these are the weights, rename them", some_of(weights)));
}

void refuse_weights_alone(const fs::path& folder) {
  refuse_adapter(folder);
  const std::vector<std::string> names = names_of_files(folder);
  refuse_other_formats(folder, names);
  std::vector<std::string> weights;
  for (const std::string& name : files_of_weights(names)) {
    if (name.starts_with("model") || name.starts_with("pytorch_model")) weights.push_back(name);
  }
  if (weights.empty()) return;
  fail(ErrorCode::kNotFound,
       "{} holds weights ({}), but no config.json, which describes their model: copy it from where "
       "they came from",
       folder.string(), some_of(weights));
}

}  // namespace skein
