#include "skein/weights/model_source.h"

#include <algorithm>
#include <vector>

#include "skein/base/hub_name.h"
#include "skein/base/log.h"
#include "skein/checkpoint/checkpoint_search.h"
#include "skein/checkpoint/stored_file.h"
#include "skein/config/run_checkpoints.h"
#include "skein/data/tokenizer.h"
#include "skein/model/decoder.h"
#include "skein/objects/object_url.h"
#include "skein/weights/initialize.h"

namespace skein {
namespace {

bool has_tokenizer(const fs::path& folder) {
  return is_stored(folder / "tokenizer.model") || is_stored(folder / "tokenizer.json");
}

void require_folder(const fs::path& folder) {
  if (is_object_url(folder) ? is_stored(folder) : fs::is_directory(folder)) return;
  fail(ErrorCode::kUsage, "{} is not a folder: expected a Hugging Face model or a checkpoint{}",
       folder.string(), hub_advice(folder.native()));
}

[[noreturn]] void refuse_folder(const fs::path& folder) {
  fail(ErrorCode::kNotFound,
       "{} holds neither manifest.json (a checkpoint), config.json (a Hugging Face model) nor a "
       "good checkpoint of a run",
       folder.string());
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

bool is_optimizer_state(std::string_view name) {
  return name.starts_with("exp_avg.") || name.starts_with("exp_avg_sq.") ||
         name.starts_with("master.");
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

// The folder itself where it is a Hugging Face model, else the checkpoint, of a run the newest.
// `named` may be a checkpoint that is being renamed just now (checkpoint_search.h).
struct Found {
  fs::path folder;
  bool is_hugging_face = false;
};
Found find_source(const fs::path& named) {
  const fs::path folder = find_checkpoint(named);
  require_folder(folder);
  if (is_stored(folder / "manifest.json")) return {folder};
  if (is_stored(folder / "config.json")) {
    refuse_model_in_bucket(folder);
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

ModelSource::ModelSource(const fs::path& named) : path_(find_checkpoint(named)) {
  const fs::path& folder = path_;
  require_folder(folder);
  if (is_stored(folder / "manifest.json")) {
    verify_patiently(folder).value();
    open_checkpoint(fs::path(folder));
  } else if (is_stored(folder / "config.json")) {
    open_hugging_face(folder);
  } else {
    open_newest_checkpoint(folder);
  }
}

ModelSource::ModelSource(const fs::path& path, IsVerified) : path_(path) {
  if (is_stored(path / "manifest.json")) {
    open_checkpoint(fs::path(path));
  } else {
    open_hugging_face(path);
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

void ModelSource::open_hugging_face(const fs::path& folder) {
  refuse_model_in_bucket(folder);
  hugging_face_ = std::make_unique<HuggingFaceFolder>(folder);
  const std::string what = (folder / "config.json").string();
  const Json json = read_json(what);
  config_ = parse_decoder(json, what);
  dtype_ = parse_hugging_face_dtype(json, what).value_or(DType::kF32);
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
    fail(ErrorCode::kInvalid, "{}: tensor '{}' is {}, the model needs {}", path_.string(), name,
         stored.to_string(), expected.to_string());
  }
}

void ModelSource::read(const std::string& name, const Box& box, DType dtype,
                       std::span<std::byte> target) const {
  if (checkpoint_) {
    checkpoint_->read(name, box, dtype, target);
  } else {
    hugging_face_->read(name, box, dtype, target);
  }
}

std::vector<std::string> ModelSource::tensor_names() const {
  if (hugging_face_) return hugging_face_->tensor_names();
  std::vector<std::string> names;
  for (const ManifestTensor& tensor : checkpoint_->manifest().tensors) {
    if (!is_optimizer_state(tensor.name)) names.push_back(tensor.name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

void ModelSource::load_parameters(const DecoderConfig& model, Executor& executor) const {
  const std::vector<ParameterSpec> specs = parameter_specs(model);
  for (const ParameterSpec& spec : specs) check_shape(spec.name, spec.shape);
  std::vector<float> values;
  for (const ParameterSpec& spec : specs) {
    if (!executor.has(spec.name)) continue;
    for_each_piece(executor.box(spec.name), [&](const Box& piece, int64_t begin) {
      values.resize(static_cast<size_t>(piece.shape.num_elements()));
      read(spec.name, piece, DType::kF32, std::as_writable_bytes(std::span(values)));
      upload_parameter(executor, spec.name, begin, values);
    });
  }
}

}  // namespace skein
