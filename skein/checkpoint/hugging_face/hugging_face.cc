#include "skein/checkpoint/hugging_face/hugging_face.h"

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/checkpoint/format/convert.h"

namespace skein {

HuggingFaceFolder::HuggingFaceFolder(const fs::path& path) : path_(path) {
  const WeightFiles found = find_weight_files(path);
  note_ = found.note;
  std::map<std::string, size_t> numbers;
  files_.reserve(found.files.size());
  for (const std::string& file : found.files) {
    numbers[file] = files_.size();
    files_.emplace_back(path / file);
  }
  if (found.index.empty()) {
    for (size_t i = 0; i < files_.size(); ++i) {
      for (const SafetensorsEntry& entry : files_[i].entries()) add(entry.name, {i, &entry});
    }
    return;
  }
  std::map<std::string_view, const SafetensorsEntry*> entries;  // of one file
  for (const auto& [file, number] : numbers) {
    entries.clear();
    for (const SafetensorsEntry& entry : files_[number].entries()) entries[entry.name] = &entry;
    for (const auto& [tensor, named] : found.weight_map) {
      if (named != file) continue;
      const auto entry = entries.find(tensor);
      if (entry == entries.end()) {
        fail(ErrorCode::kInvalid, "{} says that tensor {} is in {}, but it is not there",
             (path / found.index).string(), quoted_name(tensor), file);
      }
      add(tensor, {number, entry->second});
    }
  }
}

void HuggingFaceFolder::add(const std::string& tensor, TensorPlace place) {
  const auto [known, is_new] = places_.try_emplace(tensor, place);
  if (is_new) return;
  const std::string first = files_[known->second.file].path().filename().string();
  const std::string second = files_[place.file].path().filename().string();
  fail(ErrorCode::kInvalid, "{}: tensor {} is there twice: in {}{}", path_.string(),
       quoted_name(tensor), first, first == second ? " under two names" : " and " + second);
}

void HuggingFaceFolder::rename(const std::map<std::string, std::string>& names) {
  const auto before = std::exchange(places_, {});
  for (const auto& [name, place] : before) {
    const auto other = names.find(name);
    add(other == names.end() ? name : other->second, place);
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

const HuggingFaceFolder::TensorPlace& HuggingFaceFolder::place(std::string_view tensor) const {
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
  const TensorPlace& found = place(tensor);
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
  files_[found.file].read(entry, box, dtype, target);
}

}  // namespace skein
