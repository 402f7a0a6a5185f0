#include "skein/evaluate/tasks/known_files.h"

#include <filesystem>
#include <span>
#include <system_error>

#include "skein/base/files/file.h"
#include "skein/base/numbers/hash.h"
#include "skein/evaluate/tasks/task_config.h"

namespace skein {
namespace {

struct Row {
  std::string_view folder, module, checksum;
};
constexpr Row kFiles[] = {
    {"copa", "utils", "97e3da11bdcafe54589029cb637b11c9"},
    {"hellaswag", "utils", "6c2dc836c9fd6fbaea97852477b34767"},
    {"humaneval", "utils", "e55b283a4e85186aa80e7da70438a602"},
    {"humaneval_infilling", "utils", "626560322080f358edda3a2712100735"},
    {"logiqa", "utils_logiqa", "d51a4c170868e1fc9fa143aff5692da6"},
    {"mbpp", "utils", "5137d3135043804581fb4b05db22972e"},
    {"medqa", "preprocess_medqa", "12cceff486dbea54e42b98d40af12742"},
    {"mmlu_pro", "utils", "2886c21467ededcc3d7a9b634b5c60e1"},
    {"pubmedqa", "preprocess_pubmedqa", "66eec1d82f23ddb7ad0f592721491564"},
    {"race", "preprocess_race", "e0f8759fed393d81be737213f712e022"},
    {"truthfulqa", "utils", "3e463d8b18e10580177ef1f54e8fa344"},
    {"wikitext", "preprocess_wikitext", "7e0c7c0301d78a78de0d3de863c41d3e"},
    {"winogrande", "preprocess_winogrande", "d7c758b79b1a04dae73b7f90e9bce644"},
    {"xwinograd", "utils", "0c0fd00ec1ced4b80ba1a2708d07a5cf"},
};

std::string checksum_of(const fs::path& file) {
  constexpr int64_t kMostBytes = 4 << 20;
  const std::string text = read_file(file, kMostBytes);
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

}  // namespace

std::string folder_of(const jinja::Value& field) {
  const auto file = function_file(field);
  return file ? file->parent_path().filename().string() : "";
}

std::string called_name(const jinja::Value& field) {
  const std::string name = function_name(field).value_or("");
  return name.substr(name.rfind('.') + 1);
}

KnownFile known_file(const jinja::Value& field) {
  const auto file = function_file(field);
  if (!file) return {};
  std::error_code error;
  const bool is_there = fs::exists(*file, error);
  const std::string checksum = is_there ? checksum_of(*file) : "";
  KnownFile found;
  for (const Row& row : kFiles) {
    if (is_there && row.checksum == checksum) return {row.folder};
    if (row.folder != folder_of(field) || row.module != file->stem()) continue;
    if (!is_there) return {row.folder};
    found.is_changed = true;
  }
  return found;
}

}  // namespace skein
