#include "skein/checkpoint/manifest.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/hash.h"

namespace skein {
namespace {

OrderedJson to_json(const ManifestFile& file) {
  return {{"name", file.name},
          {"file_bytes", file.file_bytes},
          {"header_bytes", file.header_bytes},
          {"header_xxh3_128", file.header_xxh3_128}};
}

struct WithoutShards {
  const ManifestTensor* tensor;
};

OrderedJson to_json(const WithoutShards& listed) {
  return {{"name", listed.tensor->name},
          {"dtype", dtype_name(listed.tensor->dtype)},
          {"shape", listed.tensor->shape.dims()}};
}

OrderedJson to_json(const ManifestIndex& index) {
  return {{"file", index.file},
          {"file_bytes", index.file_bytes},
          {"head_bytes", index.head_bytes},
          {"head_xxh3_128", index.head_xxh3_128}};
}

OrderedJson to_json(const ManifestTensor& tensor) {
  OrderedJson shards = OrderedJson::array();
  for (const Shard& shard : tensor.shards) {
    if (shard.range) fail(ErrorCode::kInternal, "manifest.json holds boxes, not ranges of them");
    shards.push_back({{"file", shard.file},
                      {"offset", shard.slice.offset},
                      {"shape", shard.slice.shape.dims()},
                      {"bytes", {shard.begin, shard.end}},
                      {"xxh3_128", shard.xxh3_128}});
  }
  return {{"name", tensor.name},
          {"dtype", dtype_name(tensor.dtype)},
          {"shape", tensor.shape.dims()},
          {"shards", std::move(shards)}};
}

template <typename Items>
std::string list_text(const Items& items) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    text += (i == 0 ? "\n  " : ",\n  ") + to_json(items[i]).dump();
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
  try {
    add("format", "\"skein-checkpoint\"");
    add("format_version",
        std::to_string(manifest.index ? kIndexedManifestVersion : kManifestVersion));
    add("skein_version", Json(state.skein_version).dump());
    add("step", std::to_string(state.step));
    add("schedule_step", std::to_string(state.schedule_step));
    add("seed", std::to_string(state.seed));
    add("tokens_seen", std::to_string(state.tokens_seen));
    add("reduction_width", std::to_string(state.reduction_width));
    // Comes before the long values: a search for checkpoints reads no further.
    if (state.timeline != Timeline{}) add("timeline", timeline_json(state.timeline).dump());
    if (!state.validation.is_null()) add("validation", state.validation.dump());
    add("lanes", state.lanes.dump());
    add("configuration", state.configuration.dump());
    if (!state.monitor.is_null()) add("monitor", state.monitor.dump());
    if (!state.skipped_batches.is_null()) add("skipped_batches", state.skipped_batches.dump());
    if (state.roll_backs > 0) add("roll_backs", std::to_string(state.roll_backs));
    if (!state.algorithms.is_null()) add("algorithms", state.algorithms.dump());
    if (manifest.index) {
      add("index", to_json(*manifest.index).dump());
      std::vector<WithoutShards> tensors;
      for (const ManifestTensor& tensor : manifest.tensors) tensors.push_back({&tensor});
      body += "\"tensors\": " + list_text(tensors) + "}\n";
    } else {
      add("files", list_text(manifest.files));
      body += "\"tensors\": " + list_text(manifest.tensors) + "}\n";
    }
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalid, "manifest.json cannot be written: {}", error.what());
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
