#include "skein/evaluate/metrics/options.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/jinja/values/budget.h"
#include "skein/jinja/values/printed.h"

namespace skein {

using jinja::Kind;
using jinja::Value;

Options::Options(const Value& options, std::string owner)
    : options_(options), owner_(std::move(owner)) {
  if (options.is_undefined() || options.is(Kind::kNone) || options.is(Kind::kDict)) return;
  fail(ErrorCode::kUsage, "{}: its options are a {}: expected a dict", owner_,
       jinja::type_name(options));
}

void Options::allow(const std::vector<std::string_view>& known) const {
  if (!options_.is(Kind::kDict)) return;
  for (const auto& [key, value] : options_.as_dict().entries) {
    if (key.is_string() && std::find(known.begin(), known.end(), key.text()) != known.end()) {
      continue;
    }
    jinja::Budget budget{jinja::Limits{}};
    fail(ErrorCode::kUsage, "{}: the option {} is not supported: expected {}", owner_,
         jinja::printed(key, budget),
         known.empty() ? "no option" : fmt::format("one of {}", fmt::join(known, ", ")));
  }
}

const Value* Options::find(std::string_view name) const {
  return options_.is(Kind::kDict) ? options_.as_dict().find(name) : nullptr;
}

void Options::refuse(std::string_view name, const Value& found, const char* expected) const {
  jinja::Budget budget{jinja::Limits{}};
  fail(ErrorCode::kUsage, "{}: the option {} is {}: expected {}", owner_, name,
       jinja::represented(found, budget), expected);
}

std::string Options::text(std::string_view name, std::string_view or_else) const {
  const Value* const found = find(name);
  if (found == nullptr) return std::string(or_else);
  if (!found->is_string()) refuse(name, *found, "a text");
  return found->text();
}

int64_t Options::integer(std::string_view name, int64_t or_else) const {
  const Value* const found = find(name);
  if (found == nullptr) return or_else;
  if (!found->is_integer()) refuse(name, *found, "a whole number");
  return found->as_integer();
}

bool Options::truth(std::string_view name) const {
  const Value* const found = find(name);
  return found != nullptr && jinja::is_true(*found);
}

std::vector<std::string> Options::texts(std::string_view name) const {
  std::vector<std::string> all;
  const Value* const found = find(name);
  if (found == nullptr || found->is(Kind::kNone)) return all;
  if (!found->is(Kind::kSequence)) refuse(name, *found, "a list of texts");
  for (const Value& item : found->as_sequence().items) {
    if (!item.is_string()) refuse(name, *found, "a list of texts");
    all.push_back(item.text());
  }
  return all;
}

}  // namespace skein
