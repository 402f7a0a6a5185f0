#include "skein/weights/model_source.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "skein/base/text/foreign_keys.h"
#include "skein/base/text/hub_name.h"
#include "skein/base/text/log.h"
#include "skein/checkpoint/find/newest_good.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/checkpoint/save/finite.h"
#include "skein/config/run/checkpoints.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/model/decoder.h"
#include "skein/objects/store.h"
#include "skein/ops/optimizer.h"
#include "skein/weights/initialize.h"
#include "skein/weights/packed_weights.h"
#include "skein/weights/source_names.h"

namespace skein {
namespace {

void require_folder(const fs::path& folder) {
  if (is_object_url(folder) ? is_stored(folder) : fs::is_directory(folder)) return;
  if (!is_object_url(folder) && fs::is_regular_file(folder)) {
    fail(ErrorCode::kUsage,
         "{} is a file: expected the folder of a Hugging Face model, with config.json beside its "
         "weights, or a checkpoint",
         folder.string());
  }
  fail(ErrorCode::kUsage,
       "{} is not a folder: expected a run, a checkpoint or a Hugging Face model{}",
       folder.string(), hub_advice(folder.native()));
}

// Of a cache of the Hugging Face Hub the newest snapshot, of a Trainer's output the newest
// checkpoint; empty: there is none.
fs::path model_inside(const fs::path& folder) {
  fs::path newest;
  fs::file_time_type time = fs::file_time_type::min();
  std::error_code error;
  for (const fs::path& from : {folder, folder / "snapshots"}) {
    for (const auto& entry : fs::directory_iterator(from, error)) {
      const auto written = fs::last_write_time(entry.path() / "config.json", error);
      if (error || written <= time) continue;
      time = written;
      newest = entry.path();
    }
  }
  return newest;
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  if (!is_object_url(folder)) refuse_weights_alone(folder);
  const fs::path inside = is_object_url(folder) ? fs::path() : model_inside(folder);
  fail(ErrorCode::kNotFound,
       "{} holds neither manifest.json (a checkpoint), config.json (a Hugging Face model) nor a "
       "good checkpoint of a run{}",
       folder.string(),
       inside.empty() ? "" : fmt::format(": name the model inside it, {}", inside.string()));
}

// What is read of a bucket is checkpoints.
void refuse_model_in_bucket(const fs::path& folder) {
  if (!is_object_url(folder)) return;
  fail(ErrorCode::kUsage,
       "{} is a Hugging Face model in a bucket: expected a checkpoint, or the model in a folder",
       folder.string());
}

const Json& model_in(const Json& configuration, const std::string& what) {
  if (!configuration.is_object() || !configuration.contains("model")) {
    fail(ErrorCode::kInvalid, "{}: the configuration has no 'model'", what);
  }
  return configuration.at("model");
}

std::string manifest_name(const fs::path& folder) {
  return (folder / "manifest.json").string() + " (configuration.model)";
}

// A hash of what decides the tokenizer's ids; "" if there is none, or none that can be read.
std::string content_of_tokenizer(const fs::path& tokenizer) {
  try {
    return Tokenizer::load(tokenizer)->content_hash();
  } catch (const Error&) {
    return "";
  }
}

// In its run folder, <run>/tokenizer, two folders above the checkpoint; in a bucket beside it.
fs::path copy_of_tokenizer(const fs::path& checkpoint) {
  if (is_object_url(checkpoint)) return checkpoint.parent_path() / "tokenizer";
  return fs::absolute(checkpoint).parent_path().parent_path() / "tokenizer";
}

// The tokenizer that the checkpoint was trained with: the copy that its run keeps, or else the
// configured path. The recorded hash decides between them; older checkpoints have none.
fs::path find_tokenizer(const fs::path& checkpoint, const Json& configuration) {
  const fs::path copy = copy_of_tokenizer(checkpoint);
  const auto found = configuration.find("tokenizer");
  const bool is_named = found != configuration.end() && found->is_string();
  const fs::path named = is_named ? found->get<std::string>() : std::string();
  const auto wanted = Json::json_pointer("/content/tokenizer/xxh3_128");
  if (!configuration.contains(wanted) || !configuration.at(wanted).is_string()) {
    return has_tokenizer(copy) ? copy : named;
  }
  const std::string content = configuration.at(wanted);
  for (const fs::path& one : {copy, named}) {
    if (!one.empty() && content_of_tokenizer(one) == content) return one;
  }
  log::warn("{}: the tokenizer that it was trained with is gone: {} has its content (xxh3-128 {})",
            checkpoint.string(),
            named.empty() || named == copy
                ? fmt::format("no {}", copy.string())
                : fmt::format("neither {} nor {}", copy.string(), named.string()),
            content);
  return {};
}

}  // namespace

void require_init_from(const std::string& path) {
  if (is_object_url(path) ? is_stored(path) : fs::is_directory(path)) return;
  fail(ErrorCode::kUsage,
       "model.init_from is '{}', which is not a folder: expected a Hugging Face model or a "
       "checkpoint{}",
       path, hub_advice(path));
}

namespace {

void warn_of_unknown_keys(const fs::path& folder, const DecoderConfig& config) {
  const auto warn = [&](const char* file, const std::vector<std::string>& unknown) {
    const std::string line = unknown_keys_text((folder / file).string(), unknown);
    if (!line.empty()) log::warn("{}", line);
  };
  warn("config.json", config.unknown_keys);
  const fs::path generation = folder / kGenerationConfig;
  if (!fs::exists(generation)) return;
  warn(kGenerationConfig.data(),
       unknown_keys(ForeignJson::kGenerationConfig, read_json(generation.string())));
}

// The folder itself where it is a Hugging Face model, else the checkpoint, of a run the newest.
// `named` may be a checkpoint that is being renamed just now (checkpoint/find/newest_good.h).
struct SourceFolder {
  fs::path folder;
  bool is_hugging_face = false;
};
SourceFolder find_source(const fs::path& named) {
  const fs::path folder = find_checkpoint(named);
  require_folder(folder);
  if (is_stored(folder / "manifest.json")) return {folder};
  if (is_stored(folder / "config.json")) {
    refuse_model_in_bucket(folder);
    refuse_adapter(folder);
    return {folder, true};
  }
  const std::vector<CheckpointInfo> found = lineage_of(checkpoints_inside(folder)).checkpoints;
  if (found.empty()) refuse_folder(folder);
  return {found.front().path};
}

}  // namespace

Json source_model_json(const fs::path& named) {
  const auto [folder, is_hugging_face] = find_source(named);
  if (is_hugging_face) return read_json((folder / "config.json").string());
  return model_in(CheckpointReader(folder).state().configuration, manifest_name(folder));
}

std::string source_tokenizer(const fs::path& named) {
  const auto [folder, is_hugging_face] = find_source(named);
  if (is_hugging_face) return has_tokenizer(folder) ? folder.string() : "";
  return find_tokenizer(folder, CheckpointReader(folder).state().configuration).string();
}

namespace {

fs::path generation_config_in(const fs::path& folder) {
  const fs::path file = folder / kGenerationConfig;
  return is_file_or_object(file) ? file : fs::path();
}

// In its run folder, two folders above the checkpoint; beside one that lies elsewhere.
fs::path generation_config_of(const fs::path& checkpoint) {
  const bool is_object = is_object_url(checkpoint);
  const fs::path folder = (is_object ? checkpoint : fs::absolute(checkpoint)).parent_path();
  const fs::path beside = generation_config_in(folder), run = folder.parent_path();
  if (is_object || !beside.empty()) return beside;
  return fs::exists(run / "config.toml") ? generation_config_in(run) : fs::path();
}

}  // namespace

fs::path source_generation_config(const fs::path& named) {
  const auto [folder, is_hugging_face] = find_source(named);
  return is_hugging_face ? generation_config_in(folder) : generation_config_of(folder);
}

fs::path ModelSource::generation_config() const {
  return hugging_face_ ? generation_config_in(path_) : generation_config_of(path_);
}

ModelSource::ModelSource(const fs::path& named) : path_(find_checkpoint(named)) {
  const fs::path& folder = path_;
  require_folder(folder);
  if (is_stored(folder / "manifest.json")) {
    verify_patiently(folder).value();
    open_checkpoint(fs::path(folder));
  } else if (is_stored(folder / "config.json")) {
    open_hugging_face(folder, true);
  } else {
    open_newest_checkpoint(folder);
  }
}

ModelSource::ModelSource(const fs::path& path, IsVerified) : path_(path) {
  if (is_stored(path / "manifest.json")) {
    open_checkpoint(fs::path(path));
  } else {
    open_hugging_face(path, false);
  }
}

void ModelSource::open_newest_checkpoint(const fs::path& folder) {
  const auto newest = find_newest_good(
      checkpoints_inside(folder), [](const CheckpointInfo& info, const Error& why) {
        log::warn("passing over {}: {}", info.path.string(), why.what());
      });
  if (!newest) refuse_folder(folder);
  open_checkpoint(newest->path);
}

void ModelSource::open_checkpoint(const fs::path& folder) {
  path_ = folder;
  checkpoint_ = std::make_unique<CheckpointReader>(folder);
  const std::string what = manifest_name(folder);
  const Json& configuration = checkpoint_->state().configuration;
  config_ = parse_decoder(model_in(configuration, what), what);
  const ManifestTensor* embedding = checkpoint_->find(decoder_names::kEmbeddingWeight);
  if (embedding != nullptr) dtype_ = embedding->dtype;
  tokenizer_ = find_tokenizer(folder, configuration);
}

void ModelSource::open_hugging_face(const fs::path& folder, bool is_first) {
  refuse_model_in_bucket(folder);
  refuse_adapter(folder);
  const std::string what = (folder / "config.json").string();
  const Json json = read_json(what);
  config_ = parse_decoder(json, what);
  dtype_ = parse_hugging_face_dtype(json, what).value_or(DType::kF32);
  hugging_face_ = std::make_unique<HuggingFaceFolder>(folder);
  const SourceNames names = source_names(hugging_face_->tensor_names());
  hugging_face_->rename(names.renamed);
  if (is_first) warn_of_unknown_keys(folder, config_);
  if (is_first && !hugging_face_->note().empty()) log::info("{}", hugging_face_->note());
  if (is_first && !names.note.empty()) log::info("{}: {}", folder.string(), names.note);
  if (has_tokenizer(folder)) tokenizer_ = folder;
}

void ModelSource::check_shape(const std::string& name, const Shape& expected) const {
  const ManifestTensor* in_checkpoint = checkpoint_ ? checkpoint_->find(name) : nullptr;
  const SafetensorsEntry* in_folder = hugging_face_ ? hugging_face_->find(name) : nullptr;
  if (in_checkpoint == nullptr && in_folder == nullptr) {
    fail(ErrorCode::kInvalid, "{} has no tensor '{}', which the model needs", path_.string(), name);
  }
  const Shape& stored = in_checkpoint != nullptr ? in_checkpoint->shape : in_folder->shape;
  if (!(stored == expected)) {
    const bool is_transposed = stored.rank() == 2 && expected.rank() == 2 &&
                               stored.dim(0) == expected.dim(1) && stored.dim(1) == expected.dim(0);
    fail(ErrorCode::kInvalid, "{}: tensor '{}' is {}, the model needs {}{}", path_.string(), name,
         stored.to_string(), expected.to_string(),
         is_transposed ? ", its transpose: the weights are those of another kind of model" : "");
  }
}

bool ModelSource::has(const std::string& name) const {
  return checkpoint_ ? checkpoint_->find(name) != nullptr : hugging_face_->find(name) != nullptr;
}

std::string ModelSource::stored_dtype(const std::string& name) const {
  if (checkpoint_) return std::string(to_safetensors_dtype(checkpoint_->find(name)->dtype));
  return hugging_face_->find(name)->dtype;
}

void ModelSource::read(const std::string& name, const Box& box, DType dtype,
                       std::span<std::byte> target) const {
  if (checkpoint_) {
    checkpoint_->read(name, box, dtype, target);
  } else {
    hugging_face_->read(name, box, dtype, target);
  }
  if (!is_finite(dtype, target)) refuse_not_finite(name);
}

// Reads the whole tensor, so that whoever meets a part of it says the same.
void ModelSource::refuse_not_finite(const std::string& name) const {
  const SafetensorsEntry* in_folder = hugging_face_ ? hugging_face_->find(name) : nullptr;
  const Shape shape = in_folder != nullptr ? in_folder->shape : checkpoint_->find(name)->shape;
  int64_t first = -1, count = 0;
  float value = 0;
  for_each_piece(Box::whole(shape), [&](const Box& piece, int64_t begin) {
    std::vector<float> values(static_cast<size_t>(piece.shape.num_elements()));
    const auto target = std::as_writable_bytes(std::span(values));
    checkpoint_ ? checkpoint_->read(name, piece, DType::kF32, target)
                : hugging_face_->read(name, piece, DType::kF32, target);
    for (size_t i = 0; i < values.size(); ++i) {
      if (std::isfinite(values[i])) continue;
      if (count++ > 0) continue;
      first = begin + static_cast<int64_t>(i);
      value = values[i];
    }
  });
  if (count == 0) {
    fail(ErrorCode::kInvalid, "{}: tensor '{}' holds values beyond bf16: expected at most 3.39e38",
         path_.string(), name);
  }
  std::string position;
  int64_t rest = first;
  for (int dim = shape.rank() - 1; dim >= 0; --dim) {
    position = fmt::format("{}{}{}", rest % shape.dim(dim), position.empty() ? "" : ", ", position);
    rest /= shape.dim(dim);
  }
  fail(
      ErrorCode::kInvalid,
      "{}: tensor '{}' holds {} of {} values that are not finite: the first is {} at [{}]. Weights "
      "must be finite: download them again, or take an earlier checkpoint of their training",
      path_.string(), name, count, shape.num_elements(),
      std::isnan(value) ? "nan"
      : value > 0       ? "inf"
                        : "-inf",
      position);
}

std::vector<std::string> ModelSource::tensor_names() const {
  if (hugging_face_) return hugging_face_->tensor_names();
  std::vector<std::string> names;
  for (const ManifestTensor& tensor : checkpoint_->manifest().tensors) {
    if (!parse_state_name(tensor.name)) names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void ModelSource::load_parameters(const DecoderConfig& model, Executor& executor) const {
  const std::vector<ParameterSpec> specs = parameter_specs(model);
  for (const ParameterSpec& spec : specs) check_shape(spec.name, spec.shape);
  for (const ParameterSpec& spec : specs) {
    fill_packed_weight(executor, spec,
                       [&](const Box& box, DType dtype, std::span<std::byte> target) {
                         read(spec.name, box, dtype, target);
                       });
    if (!executor.has(spec.name)) continue;
    fill_parameter(executor, spec, [&](const Box& piece, std::span<float> values) {
      read(spec.name, piece, DType::kF32, std::as_writable_bytes(values));
    });
  }
}

}  // namespace skein
