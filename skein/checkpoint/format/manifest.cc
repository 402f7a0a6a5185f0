#include "skein/checkpoint/format/manifest.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

OrderedJson file_json(const ManifestFile& file) {
  return {{"name", file.name},
          {"file_bytes", file.file_bytes},
          {"header_bytes", file.header_bytes},
          {"header_xxh3_128", file.header_xxh3_128}};
}

OrderedJson index_json(const ManifestIndex& index) {
  return {{"file", index.file},
          {"file_bytes", index.file_bytes},
          {"head_bytes", index.head_bytes},
          {"head_xxh3_128", index.head_xxh3_128}};
}

// Without its shards, which the index holds.
OrderedJson type_json(const ManifestTensor& tensor) {
  return {
      {"name", tensor.name}, {"dtype", dtype_name(tensor.dtype)}, {"shape", tensor.shape.dims()}};
}

OrderedJson tensor_json(const ManifestTensor& tensor) {
  OrderedJson shards = OrderedJson::array();
  for (const Shard& shard : tensor.shards) {
    if (shard.range) fail(ErrorCode::kInternal, "manifest.json holds boxes, not ranges of them");
    shards.push_back({{"file", shard.file},
                      {"offset", shard.slice.offset},
                      {"shape", shard.slice.shape.dims()},
                      {"bytes", {shard.begin, shard.end}},
                      {"xxh3_128", shard.xxh3_128}});
  }
  OrderedJson json = type_json(tensor);
  json["shards"] = std::move(shards);
  return json;
}

template <typename Item>
std::string list_text(const std::vector<Item>& items, OrderedJson (*item_json)(const Item&)) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") +
            exact_json(item_json(items[i]), "manifest.json, tensors and files");
  }
  return text + "\n]";
}

}  // namespace

std::string manifest_text(const Manifest& manifest) {
  const TrainingState& state = manifest.state;
  std::string body;
  const auto add = [&body](std::string_view key, const std::string& value) {
    body += fmt::format("\"{}\": {},\n", key, value);
  };
  const auto add_json = [&add](const char* key, const Json& value) {
    add(key, exact_json(value, fmt::format("manifest.json, {}", key)));
  };
  const auto add_if_any = [&add_json](const char* key, const Json& value) {
    if (!value.is_null()) add_json(key, value);
  };
  add("format", "\"skein-checkpoint\"");
  add("format_version",
      std::to_string(manifest.index ? kIndexedManifestVersion : kManifestVersion));
  add_json("skein_version", state.skein_version);
  add("step", std::to_string(state.step));
  add("schedule_step", std::to_string(state.schedule_step));
  add("seed", std::to_string(state.seed));
  add("tokens_seen", std::to_string(state.tokens_seen));
  add("reduction_width", std::to_string(state.reduction_width));
  // Comes before the long values: a search for checkpoints reads no further.
  if (state.timeline != Timeline{}) add_json("timeline", timeline_json(state.timeline));
  add_if_any("validation", state.validation);
  add_json("lanes", state.lanes);
  add_json("configuration", state.configuration);
  add_if_any("monitor", state.monitor);
  add_if_any("skipped_batches", state.skipped_batches);
  if (state.roll_backs > 0) add("roll_backs", std::to_string(state.roll_backs));
  add_if_any("algorithms", state.algorithms);
  if (manifest.index) {
    add("index", exact_json(index_json(*manifest.index), "manifest.json, index"));
    body += "\"tensors\": " + list_text(manifest.tensors, type_json) + "}\n";
  } else {
    add("files", list_text(manifest.files, file_json));
    body += "\"tensors\": " + list_text(manifest.tensors, tensor_json) + "}\n";
  }
  return fmt::format("{{\"manifest_xxh3_128\": \"{}\",\n",
                     xxh3_128_hex(std::as_bytes(std::span(body)))) +
         body;
}

const ManifestTensor* Manifest::find(std::string_view name) const {
  for (const ManifestTensor& tensor : tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

int64_t Manifest::total_bytes() const {
  int64_t bytes = 0;
  for (const ManifestFile& file : files) bytes += file.file_bytes;
  return bytes;
}

}  // namespace skein
