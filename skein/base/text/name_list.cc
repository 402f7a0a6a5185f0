#include "skein/base/text/name_list.h"

#include <algorithm>

namespace skein {

std::vector<std::string> names_of_list(std::string_view list) {
  constexpr std::string_view kBlanks = " \t\n";
  std::vector<std::string> names;
  for (size_t at = 0; at < list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    const std::string_view name = list.substr(at, comma - at);
    const size_t begin = name.find_first_not_of(kBlanks), end = name.find_last_not_of(kBlanks);
    if (begin != name.npos) names.emplace_back(name.substr(begin, end + 1 - begin));
    at = comma + 1;
  }
  return names;
}

}  // namespace skein
