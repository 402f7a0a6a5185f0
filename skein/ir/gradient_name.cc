#include "skein/ir/gradient_name.h"

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr std::string_view kPrefix = "grad.";

}  // namespace

std::string gradient_name(std::string_view parameter, std::string_view scope) {
  return fmt::format("{}{}{}{}", kPrefix, parameter, scope.empty() ? "" : "/", scope);
}

GradientName parse_gradient_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) {
    fail(ErrorCode::kInternal, "'{}' is not the name of a gradient sum: expected {}<parameter>",
         name, kPrefix);
  }
  name.remove_prefix(kPrefix.size());
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return {name, {}};
  return {name.substr(0, slash), name.substr(slash + 1)};
}

}  // namespace skein
