#include "skein/weights/export.h"

#include "skein/base/log.h"
#include "skein/data/tokenizer.h"
#include "skein/model/decoder.h"
#include "skein/weights/init_source.h"

namespace skein {
namespace {

std::string generation_config(const DecoderConfig& config) {
  OrderedJson json = OrderedJson::object();
  json["_from_model_config"] = true;
  if (config.bos_token_id) json["bos_token_id"] = *config.bos_token_id;
  if (config.eos_token_ids.size() == 1) json["eos_token_id"] = config.eos_token_ids.front();
  if (config.eos_token_ids.size() > 1) json["eos_token_id"] = config.eos_token_ids;
  if (config.pad_token_id) json["pad_token_id"] = *config.pad_token_id;
  return json.dump(2) + "\n";
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
  if (!family.auto_tokenizer) {
    log::warn(
        "transformers' AutoTokenizer takes a tokenizer of its own for a model_type \"{}\", "
        "whatever the folder says, and gives other ids: load this one with PreTrainedTokenizerFast",
        family.model_type);
  }
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
      to_hugging_face_json(source.config(), source.dtype()).dump(2) + "\n";
  contents.texts["generation_config.json"] = generation_config(source.config());
  if (with_tokenizer) add_tokenizer(source, contents);
  write_hugging_face(out, contents);
}

}  // namespace skein
