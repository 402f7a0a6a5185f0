#include "skein/base/text/hub_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <system_error>

namespace skein {
namespace {

bool is_part(std::string_view text) {
  const auto fits = [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.';
  };
  return !text.empty() && text.size() <= 96 &&
         std::isalnum(static_cast<unsigned char>(text[0])) != 0 &&
         std::all_of(text.begin(), text.end(), fits);
}

}  // namespace

std::string hub_advice(std::string_view path, std::string_view kind) {
  const size_t slash = path.find('/');
  if (slash == path.npos) return "";
  const std::string_view owner = path.substr(0, slash), name = path.substr(slash + 1);
  std::error_code ignored;
  if (!is_part(owner) || !is_part(name) || std::filesystem::exists(owner, ignored)) return "";
  const bool is_model = kind == "model";
  return fmt::format(
      "; if this is a {} of the Hugging Face Hub, `hf download {}{} --local-dir {}` brings it: "
      "then name the folder {}",
      is_model ? "model" : "data set", path, is_model ? "" : " --repo-type dataset", name, name);
}

}  // namespace skein
