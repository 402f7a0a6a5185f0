#include "skein/weights/export.h"

#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/data/tokenizer/folder/sources.h"
#include "skein/data/tokenizer/tokenizer.h"
#include "skein/model/decoder.h"
#include "skein/objects/store.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

// The source's own, whose defaults for drawing no training changes.
std::string generation_config(const ModelSource& source) {
  if (const fs::path file = source.generation_config(); !file.empty()) {
    return read_file_or_object(file);
  }
  const DecoderConfig& config = source.config();
  OrderedJson json = OrderedJson::object();
  json["_from_model_config"] = true;
  if (config.bos_token_id) json["bos_token_id"] = *config.bos_token_id;
  if (config.eos_token_ids.size() == 1) json["eos_token_id"] = config.eos_token_ids.front();
  if (config.eos_token_ids.size() > 1) json["eos_token_id"] = config.eos_token_ids;
  if (config.pad_token_id) json["pad_token_id"] = *config.pad_token_id;
  return exact_json(json, "config.json", 2) + "\n";
}

// The export is made from what training used: where that is tokenizer.model, a tokenizer.json
// beside it may differ.
void add_tokenizer(const ModelSource& source, HuggingFaceExport& contents) {
  if (source.tokenizer().empty()) {
    log::warn("{} names no tokenizer: the export has none", source.path().string());
    return;
  }
  const auto tokenizer = Tokenizer::load(source.tokenizer());
  if (const std::string why = tokenizer->why_not_exported(); !why.empty()) {
    fail(ErrorCode::kUnsupported,
         "{}: this tokenizer cannot be written for transformers so that it gives the ids of "
         "training: {}. --without-tokenizer exports the model alone; its ids are those of "
         "SentencePiece with this tokenizer.model",
         source.tokenizer().string(), why);
  }
  for (auto& [name, text] : tokenizer->export_files()) contents.texts[name] = text;
  const FamilyDef& family = *source.config().family;
  const std::string rebuilt =
      class_of_other_ids(contents.texts, family.auto_tokenizer ? "" : "Qwen2Tokenizer");
  if (rebuilt.empty()) return;
  log::warn(
      "transformers' AutoTokenizer takes {} for this folder, which splits texts by rules of its "
      "own, so that ids may differ from those of training: load it with PreTrainedTokenizerFast",
      rebuilt);
}

}  // namespace

void export_hugging_face(const ModelSource& source, const fs::path& out, bool with_tokenizer) {
  check_tensors(source, source.config());
  HuggingFaceExport contents;
  for (const ParameterSpec& spec : parameter_specs(source.config())) {
    contents.tensors.push_back(
        {spec.name, source.dtype(), spec.shape, [&source, spec](std::span<std::byte> target) {
           source.read(spec.name, Box::whole(spec.shape), source.dtype(), target);
         }});
  }
  contents.texts["config.json"] =
      exact_json(to_hugging_face_json(source.config(), source.dtype()), "config.json", 2) + "\n";
  contents.texts[std::string(kGenerationConfig)] = generation_config(source);
  if (with_tokenizer) add_tokenizer(source, contents);
  write_hugging_face(out, contents);
}

}  // namespace skein
