#include "skein/checkpoint/hugging_face.h"

#include "skein/base/error.h"
#include "skein/base/json.h"
#include "skein/checkpoint/convert.h"

namespace skein {
namespace {

constexpr char kSingleFile[] = "model.safetensors";
constexpr char kIndexFile[] = "model.safetensors.index.json";
constexpr int64_t kMaxIndexBytes = int64_t{100} << 20;

// A name from outside, escaped and shortened for a message.
std::string shown(const std::string& text) {
  return Json(text.substr(0, 200)).dump(-1, ' ', true, Json::error_handler_t::replace);
}

bool is_plain_file_name(const std::string& name) {
  return name.ends_with(".safetensors") && name.size() < 256 && name.front() != '.' &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

}  // namespace

std::map<std::string, std::string> parse_hugging_face_index(std::string_view text,
                                                            const std::string& what) {
  const Json json = parse_json(text, what);
  const auto weight_map = json.is_object() ? json.find("weight_map") : json.end();
  if (!json.is_object() || weight_map == json.end() || !weight_map->is_object()) {
    fail(ErrorCode::kInvalid, "{}: expected an object with a key \"weight_map\", an object", what);
  }
  std::map<std::string, std::string> map;
  for (const auto& [tensor, file] : weight_map->items()) {
    if (!file.is_string() || !is_plain_file_name(file.get_ref<const std::string&>())) {
      fail(ErrorCode::kInvalid,
           "{}: weight_map {} is {}, expected the name of a .safetensors file in the same folder",
           what, shown(tensor), file.is_string() ? shown(file) : file.type_name());
    }
    map[tensor] = file.get<std::string>();
  }
  return map;
}

HuggingFaceFolder::HuggingFaceFolder(const fs::path& path) : path_(path) {
  const fs::path index_path = path / kIndexFile;
  if (fs::exists(path / kSingleFile)) {
    files_.emplace_back(path / kSingleFile);
    for (const SafetensorsEntry& entry : files_[0].entries()) places_[entry.name] = {0, &entry};
    return;
  }
  if (!fs::exists(index_path)) {
    fail(ErrorCode::kNotFound,
         "{} is not a Hugging Face model folder: expected {} or {} in it (a .bin model must be "
         "saved again as safetensors)",
         path.string(), kSingleFile, kIndexFile);
  }
  const auto weight_map =
      parse_hugging_face_index(read_file(index_path, kMaxIndexBytes), index_path.string());
  std::map<std::string, size_t> file_numbers;
  for (const auto& [tensor, file] : weight_map) {
    if (file_numbers.try_emplace(file, files_.size()).second) files_.emplace_back(path / file);
  }
  for (const auto& [tensor, file] : weight_map) {
    const size_t number = file_numbers[file];
    const SafetensorsEntry* entry = files_[number].find(tensor);
    if (entry == nullptr) {
      fail(ErrorCode::kInvalid, "{} says that tensor {} is in {}, but it is not there",
           index_path.string(), shown(tensor), file);
    }
    places_[tensor] = {number, entry};
  }
}

std::vector<std::string> HuggingFaceFolder::tensor_names() const {
  std::vector<std::string> names;
  for (const auto& [name, place] : places_) names.push_back(name);
  return names;
}

const SafetensorsEntry* HuggingFaceFolder::find(std::string_view tensor) const {
  const auto found = places_.find(tensor);
  return found == places_.end() ? nullptr : found->second.entry;
}

const HuggingFaceFolder::Place& HuggingFaceFolder::place(std::string_view tensor) const {
  const auto found = places_.find(tensor);
  if (found == places_.end()) {
    fail(ErrorCode::kNotFound, "{} has no tensor \"{}\"", path_.string(), tensor);
  }
  return found->second;
}

void HuggingFaceFolder::read(std::string_view tensor, DType dtype,
                             std::span<std::byte> target) const {
  const Shape& shape = place(tensor).entry->shape;
  if (shape.num_elements() == 0 && target.empty()) return;
  read(tensor, Box::whole(shape), dtype, target);
}

void HuggingFaceFolder::read(std::string_view tensor, const Box& box, DType dtype,
                             std::span<std::byte> target) const {
  const Place& found = place(tensor);
  const SafetensorsEntry& entry = *found.entry;
  const std::string file = files_[found.file].path().string();
  if (!can_convert(entry.dtype, dtype)) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\" is {}: it cannot be read as {}", file, tensor,
         entry.dtype, dtype_name(dtype));
  }
  if (!box.inside(entry.shape)) {
    fail(ErrorCode::kInvalid, "{}: tensor \"{}\" has shape {}: {} is not a box inside it", file,
         tensor, entry.shape.to_string(), box.to_string());
  }
  if (static_cast<int64_t>(target.size()) != box.shape.num_elements() * size_of(dtype)) {
    fail(ErrorCode::kInternal, "tensor \"{}\": {} bytes given for {} of {}", tensor, target.size(),
         dtype_name(dtype), box.shape.to_string());
  }
  const std::byte* source = files_[found.file].bytes(entry).data();
  const int64_t element_bytes = safetensors_element_bytes(entry.dtype);
  for_each_run(Box::whole(entry.shape), box, [&](int64_t from, int64_t to, int64_t count) {
    convert_elements(entry.dtype, source + from * element_bytes, dtype,
                     target.data() + to * size_of(dtype), count);
  });
  files_[found.file].forget(entry);
}

}  // namespace skein
