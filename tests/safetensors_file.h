// A safetensors file, mapped, with its tensors by name.
#pragma once

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"
#include "skein/checkpoint/format/safetensors.h"

namespace skein::test {

class SafetensorsFile {
 public:
  explicit SafetensorsFile(const fs::path& path)
      : file_(path), header_(parse_safetensors_header(file_.bytes(), path.string())) {}

  int64_t file_bytes() const { return static_cast<int64_t>(file_.bytes().size()); }
  int64_t data_begin() const { return header_.data_begin; }
  const std::vector<SafetensorsEntry>& entries() const { return header_.entries; }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

  // nullptr if there is none.
  const SafetensorsEntry* find(std::string_view name) const {
    const auto found =
        std::find_if(entries().begin(), entries().end(),
                     [&](const SafetensorsEntry& entry) { return entry.name == name; });
    return found == entries().end() ? nullptr : &*found;
  }
  std::span<const std::byte> bytes(const SafetensorsEntry& entry) const {
    return file_.bytes().subspan(entry.begin, entry.num_bytes());
  }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace skein::test
