#include "skein/evaluate/tasks/task_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/files/file.h"
#include "skein/evaluate/yaml/yaml_value.h"

namespace skein {
namespace {

using jinja::Kind;
using jinja::Value;

constexpr size_t kMaxIncludes = 32;

std::vector<std::string> included_by(const Value& include, const std::string& file) {
  std::vector<Value> names = {include};
  if (include.is(Kind::kSequence)) names = include.as_sequence().items;
  std::vector<std::string> paths;
  for (const Value& name : names) {
    if (!name.is_string() || name.text().empty())
      fail(ErrorCode::kInvalid,
           "{}: include: a {}; expected the path of a file, or a list of paths", file,
           jinja::type_name(name));
    paths.push_back(name.text());
  }
  return paths;
}

}  // namespace

const Value& TaskFiles::parsed(const std::string& file) {
  if (const auto found = parsed_.find(file); found != parsed_.end()) return found->second;
  if (!fs::is_regular_file(file)) fail(ErrorCode::kInvalid, "{}: expected a file", file);
  const Value value = yaml_value(read_file(file, YamlLimits{}.max_bytes), file);
  if (!value.is(Kind::kDict))
    fail(ErrorCode::kInvalid, "{}: a {}; expected a dict, such as `task: name`", file,
         jinja::type_name(value));
  return parsed_.emplace(file, value).first->second;
}

Value TaskFiles::read(const fs::path& file) {
  Chain chain;
  return read(file, chain);
}

Value TaskFiles::read(const fs::path& file, Chain& chain) {
  std::error_code error;
  const fs::path place = fs::canonical(file, error);
  if (error) {
    const std::string by = chain.open.empty() ? "" : ", which " + chain.open.back() + " includes";
    fail(errno_code(error.value()), "{}{}: {}", file.string(), by, error.message());
  }
  const std::string& name = place.native();
  if (!chain.seen.insert(name).second) {
    const auto first = std::find(chain.open.begin(), chain.open.end(), name);
    if (first != chain.open.end())
      fail(ErrorCode::kInvalid, "{} includes itself: {} -> {}", name,
           fmt::join(first, chain.open.end(), " -> "), name);
    fail(ErrorCode::kInvalid, "{} is included twice, the second time by {}; include it once", name,
         fmt::join(chain.open, " -> "));
  }
  if (chain.open.size() >= kMaxIncludes)
    fail(ErrorCode::kInvalid, "{}: more than {} files include each other", name, kMaxIncludes);
  const Value own = parsed(name);
  const Value* const include = own.as_dict().find("include");
  if (include == nullptr) return own;
  chain.open.push_back(name);
  auto merged = std::make_shared<jinja::Dict>();
  for (const std::string& path : included_by(*include, name)) {
    const Value included = read(place.parent_path() / path, chain);
    for (const auto& [key, value] : included.as_dict().entries) {
      if (!key.is_string() || key.text() != "task_list") merged->set(key, value);
    }
  }
  chain.open.pop_back();
  for (const auto& [key, value] : own.as_dict().entries) {
    if (!key.is_string() || key.text() != "include") merged->set(key, value);
  }
  return Value::of(Kind::kDict, std::move(merged));
}

}  // namespace skein
