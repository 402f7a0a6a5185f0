#include "skein/launch/jobs/sweep.h"

#include <algorithm>
#include <set>

#include "skein/base/error.h"

namespace skein {
namespace {

struct SweptKey {
  std::string key;
  std::vector<std::string> values;
};

SweptKey parse_swept_key(const std::string& text, const ExplainKey& explain_key) {
  const size_t equals = text.find('='), dot = text.find('.');
  if (equals == std::string::npos || dot == 0 || dot > equals) {
    fail(ErrorCode::kUsage,
         "--sweep is \"{}\": expected section.key=V1,V2,..., such as "
         "optimizer.learning_rate=1e-3,3e-4{}",
         text.substr(0, 200), explain_key ? explain_key(text.substr(0, equals)) : std::string());
  }
  if (text[equals + 1] == '[') {
    fail(ErrorCode::kUsage,
         "--sweep {} is a list in brackets: expected the values with commas between them, such as "
         "optimizer.learning_rate=1e-3,3e-4",
         text.substr(0, 200));
  }
  SweptKey swept{.key = text.substr(0, equals), .values = {}};
  std::set<std::string> seen;
  for (size_t begin = equals + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string value = text.substr(begin, end - begin);
    if (value.empty() || !seen.insert(value).second) {
      fail(ErrorCode::kUsage, "--sweep {}: {}: expected different values with a comma between them",
           swept.key,
           value.empty() ? "a value is empty" : fmt::format("{} stands there twice", value));
    }
    swept.values.push_back(value);
    begin = end + 1;
  }
  return swept;
}

}  // namespace

std::vector<std::vector<std::string>> sweep_settings(std::span<const std::string> swept,
                                                     const ExplainKey& explain_key) {
  std::vector<std::vector<std::string>> combinations = {{}};
  std::set<std::string> keys;
  for (const std::string& text : swept) {
    const SweptKey key = parse_swept_key(text, explain_key);
    if (!keys.insert(key.key).second) {
      fail(ErrorCode::kUsage, "--sweep names {} twice: give all its values in one", key.key);
    }
    if (combinations.size() * key.values.size() > kMaxSweep) {
      fail(ErrorCode::kUsage, "--sweep asks for {} runs or more: expected at most {}",
           combinations.size() * key.values.size(), kMaxSweep);
    }
    std::vector<std::vector<std::string>> longer;
    for (const auto& settings : combinations) {
      for (const std::string& value : key.values) {
        longer.push_back(settings);
        longer.back().push_back(key.key + "=" + value);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

}  // namespace skein
