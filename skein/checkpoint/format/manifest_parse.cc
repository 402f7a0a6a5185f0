// The strict parser of manifest.json.
#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"
#include "skein/checkpoint/format/manifest.h"

namespace skein {
namespace {

constexpr int kMaxRank = 16;

// Reads a JSON object key by key: every key must exist, have its type, and be read.
class Fields {
 public:
  Fields(const Json& json, std::string where) : json_(json), where_(std::move(where)) {
    if (!json.is_object()) {
      fail(ErrorCode::kInvalid, "{}: found {}, expected an object", where_, json.type_name());
    }
  }

  // nullptr if there is no such key.
  const Json* find(const char* key) {
    const auto found = json_.find(key);
    if (found == json_.end()) return nullptr;
    ++num_read_;
    return &*found;
  }

  const Json& get(const char* key) {
    ++num_read_;
    const auto found = json_.find(key);
    if (found == json_.end()) fail(ErrorCode::kInvalid, "{}: key \"{}\" is missing", where_, key);
    return *found;
  }

  int64_t integer(const char* key, int64_t minimum) {
    return checked_integer(get(key), fmt::format("{}: {}", where_, key), minimum);
  }

  int64_t integer_or(const char* key, int64_t minimum, int64_t absent) {
    return json_.contains(key) ? integer(key, minimum) : absent;
  }

  uint64_t unsigned_integer(const char* key) {
    const Json& value = get(key);
    if (!value.is_number_unsigned()) wrong(key, value, "an integer of 0 or more");
    return value.get<uint64_t>();
  }

  std::string text(const char* key) {
    const Json& value = get(key);
    if (!value.is_string()) wrong(key, value, "a text");
    return value.get<std::string>();
  }

  std::string checksum(const char* key) {
    std::string digits = text(key);
    if (digits.size() != 32 || digits.find_first_not_of("0123456789abcdef") != digits.npos) {
      wrong(key, json_.at(key), "32 lower-case hexadecimal digits");
    }
    return digits;
  }

  const Json& array(const char* key) {
    const Json& value = get(key);
    if (!value.is_array()) wrong(key, value, "an array");
    return value;
  }

  std::vector<int64_t> integers(const char* key, int64_t minimum, size_t max_count) {
    const Json& values = array(key);
    if (values.size() > max_count) wrong(key, values, fmt::format("at most {} items", max_count));
    std::vector<int64_t> result;
    for (const Json& value : values) {
      result.push_back(checked_integer(value, fmt::format("{}: {}", where_, key), minimum));
    }
    return result;
  }

  // A key that nothing read is a mistake, or belongs to a version that we do not know.
  void finish() const {
    if (json_.size() == num_read_) return;
    fail(ErrorCode::kInvalid, "{}: {} keys, expected {}: unknown keys are not allowed", where_,
         json_.size(), num_read_);
  }

  [[noreturn]] void wrong(const char* key, const Json& found, std::string_view expected) const {
    std::string text = ascii_json_text(found);
    if (text.size() > 100) text = text.substr(0, 100) + "…";
    fail(ErrorCode::kInvalid, "{}: {} is {}, expected {}", where_, key, text, expected);
  }

  const std::string& where() const { return where_; }

 private:
  static int64_t checked_integer(const Json& value, const std::string& where, int64_t minimum) {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<uint64_t>() <= uint64_t{std::numeric_limits<int64_t>::max()});
    if (!fits || value.get<int64_t>() < minimum) {
      fail(ErrorCode::kInvalid, "{} is {}, expected an integer of at least {}", where,
           value.is_number() ? json_text(value) : value.type_name(), minimum);
    }
    return value.get<int64_t>();
  }

  const Json& json_;
  std::string where_;
  size_t num_read_ = 0;
};

void check_file_name(const Fields& fields, const char* key, const std::string& name) {
  if (!is_shard_file_name(name))
    fields.wrong(key, Json(name), "the name of a .safetensors file in this folder");
}

ManifestFile parse_file(const Json& json, const std::string& where) {
  Fields fields(json, where);
  ManifestFile file{.name = fields.text("name"),
                    .file_bytes = fields.integer("file_bytes", 8),
                    .header_bytes = fields.integer("header_bytes", 8),
                    .header_xxh3_128 = fields.checksum("header_xxh3_128")};
  fields.finish();
  check_file_name(fields, "name", file.name);
  return file;
}

Shard parse_shard(const Json& json, const std::string& where, const ManifestTensor& tensor) {
  Fields fields(json, where);
  Shard shard;
  shard.file = fields.text("file");
  shard.slice.offset = fields.integers("offset", 0, kMaxRank);
  shard.slice.shape = Shape(fields.integers("shape", 1, kMaxRank));
  const std::vector<int64_t> bytes = fields.integers("bytes", 0, 2);
  const std::string digits = fields.checksum("xxh3_128");
  shard.xxh3_128 = digits;
  fields.finish();
  if (!shard.slice.inside(tensor.shape)) {
    fail(ErrorCode::kInvalid, "{}: offset and shape are not a box inside {}", where,
         tensor.shape.to_string());
  }
  const int64_t expected = shard.slice.shape.num_elements() * size_of(tensor.dtype);
  if (bytes.size() != 2 || bytes[1] < bytes[0] || bytes[1] - bytes[0] != expected) {
    fields.wrong("bytes", json.at("bytes"), fmt::format("a range of {} bytes", expected));
  }
  shard.begin = bytes[0];
  shard.end = bytes[1];
  return shard;
}

ManifestTensor parse_tensor(const Json& json, const std::string& where, bool has_shards) {
  Fields fields(json, where);
  ManifestTensor tensor;
  tensor.name = fields.text("name");
  const std::string dtype = fields.text("dtype");
  const std::optional<DType> known = parse_dtype(dtype);
  if (!known) fields.wrong("dtype", Json(dtype), "f32, bf16, i32 or f64");
  tensor.dtype = *known;
  tensor.shape = Shape(fields.integers("shape", 1, kMaxRank));
  if (!checked_bytes(tensor.shape, size_of(tensor.dtype))) {
    fields.wrong("shape", json.at("shape"), "a size that can be real");
  }
  if (!has_shards) {
    fields.finish();
    return tensor;
  }
  const Json& shards = fields.array("shards");
  fields.finish();
  std::vector<Box> boxes;
  for (size_t i = 0; i < shards.size(); ++i) {
    tensor.shards.push_back(
        parse_shard(shards[i], fmt::format("{}: shards[{}]", where, i), tensor));
    boxes.push_back(tensor.shards.back().slice);
  }
  const std::string problem = tiling_error(tensor.shape, boxes);
  if (!problem.empty()) fail(ErrorCode::kInvalid, "{}: {}", where, problem);
  return tensor;
}

// Every byte after a file's header belongs to exactly one shard.
void check_files_covered(const Manifest& manifest, const std::string& what) {
  std::map<std::string, std::vector<std::pair<int64_t, int64_t>>> ranges;
  for (const ManifestFile& file : manifest.files) {
    if (!ranges.try_emplace(file.name).second) {
      fail(ErrorCode::kInvalid, "{}: file \"{}\" is listed twice", what, file.name);
    }
  }
  for (const ManifestTensor& tensor : manifest.tensors) {
    for (const Shard& shard : tensor.shards) {
      const auto file = ranges.find(shard.file);
      if (file == ranges.end()) {
        fail(ErrorCode::kInvalid, "{}: tensor \"{}\" is in file \"{}\", which is not listed", what,
             tensor.name, shard.file);
      }
      file->second.emplace_back(shard.begin, shard.end);
    }
  }
  for (const ManifestFile& file : manifest.files) {
    auto& of_file = ranges[file.name];
    std::sort(of_file.begin(), of_file.end());
    int64_t expected = file.header_bytes;
    for (const auto& [begin, end] : of_file) {
      if (begin != expected) {
        fail(ErrorCode::kInvalid, "{}: a shard of \"{}\" starts at byte {}, expected {}", what,
             file.name, begin, expected);
      }
      expected = end;
    }
    if (expected != file.file_bytes) {
      fail(ErrorCode::kInvalid, "{}: the shards of \"{}\" end at byte {}, its file_bytes are {}",
           what, file.name, expected, file.file_bytes);
    }
  }
}

// Compares the checksum on the first line; throws if the rest does not match it.
void check_checksum(std::string_view text, const std::string& what) {
  constexpr std::string_view kBefore = "{\"manifest_xxh3_128\": \"";
  constexpr std::string_view kAfter = "\",\n";
  const size_t line_bytes = kBefore.size() + 32 + kAfter.size();
  if (text.size() < line_bytes || !text.starts_with(kBefore) ||
      text.substr(kBefore.size() + 32, kAfter.size()) != kAfter) {
    fail(ErrorCode::kInvalid,
         "{}: expected a first line {{\"manifest_xxh3_128\": \"<32 hexadecimal digits>\",", what);
  }
  const std::string_view stored = text.substr(kBefore.size(), 32);
  const std::string actual = xxh3_128_hex(std::as_bytes(std::span(text.substr(line_bytes))));
  if (stored != actual) {
    fail(ErrorCode::kCorrupt, "{}: its checksum is {}, expected {}: the file was changed", what,
         actual, ascii_json_text(Json(stored)));
  }
}

TrainingState parse_state(Fields& fields) {
  TrainingState state;
  state.skein_version = fields.text("skein_version");
  state.step = fields.integer("step", 0);
  state.schedule_step = fields.integer("schedule_step", 0);
  state.seed = fields.unsigned_integer("seed");
  state.tokens_seen = fields.integer("tokens_seen", 0);
  state.reduction_width = fields.integer("reduction_width", 1);
  if (const Json* timeline = fields.find("timeline")) {  // missing in older versions
    state.timeline = parse_timeline(*timeline, fields.where() + ": timeline");
  }
  state.lanes = fields.get("lanes");
  state.configuration = fields.get("configuration");
  // Only in newer versions.
  if (const Json* monitor = fields.find("monitor")) state.monitor = *monitor;
  if (const Json* skipped = fields.find("skipped_batches")) state.skipped_batches = *skipped;
  state.roll_backs = fields.integer_or("roll_backs", 1, 0);
  if (const Json* validation = fields.find("validation")) state.validation = *validation;
  if (const Json* algorithms = fields.find("algorithms")) state.algorithms = *algorithms;
  return state;
}

// index.bin, or in a bucket index.<save>.bin
bool is_index_name(std::string_view name) {
  return name.size() < 256 && name.starts_with("index.") && name.ends_with(".bin") &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

ManifestIndex parse_index(const Json& json, const std::string& where) {
  Fields fields(json, where);
  ManifestIndex index{.file = fields.text("file"),
                      .file_bytes = fields.integer("file_bytes", 1),
                      .head_bytes = fields.integer("head_bytes", 1),
                      .head_xxh3_128 = fields.checksum("head_xxh3_128")};
  fields.finish();
  if (!is_index_name(index.file)) {
    fields.wrong("file", Json(index.file), fmt::format("\"{}\", or index.<save>.bin", kIndexName));
  }
  return index;
}

}  // namespace

bool is_shard_file_name(std::string_view name) {
  return name.size() > 12 && name.size() < 256 && name.ends_with(".safetensors") &&
         name.front() != '.' && name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

Manifest parse_manifest(std::string_view text, const std::string& what) {
  check_checksum(text, what);
  const Json json = parse_json(text, what);
  Fields fields(json, what);
  fields.checksum("manifest_xxh3_128");
  const std::string format = fields.text("format");
  if (format != "skein-checkpoint") fields.wrong("format", Json(format), "\"skein-checkpoint\"");
  const int64_t version = fields.integer("format_version", 1);
  if (version > kIndexedManifestVersion) {
    fail(ErrorCode::kUnsupported, "{}: format_version {} is newer than {}: use a newer skein", what,
         version, kIndexedManifestVersion);
  }
  Manifest manifest;
  manifest.state = parse_state(fields);
  const bool is_indexed = version == kIndexedManifestVersion;
  if (is_indexed) manifest.index = parse_index(fields.get("index"), what + ": index");
  const Json none = Json::array();
  const Json& files = is_indexed ? none : fields.array("files");
  const Json& tensors = fields.array("tensors");
  fields.finish();
  for (size_t i = 0; i < files.size(); ++i) {
    manifest.files.push_back(parse_file(files[i], fmt::format("{}: files[{}]", what, i)));
  }
  std::set<std::string> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string where = fmt::format("{}: tensors[{}]", what, i);
    manifest.tensors.push_back(parse_tensor(tensors[i], where, !is_indexed));
    if (!names.insert(manifest.tensors.back().name).second) {
      fail(ErrorCode::kInvalid, "{}: tensor \"{}\" is listed twice", where,
           manifest.tensors.back().name);
    }
  }
  check_files_covered(manifest, what);
  return manifest;
}

}  // namespace skein
