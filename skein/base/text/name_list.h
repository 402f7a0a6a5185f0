// Lists of names in one text, as users write them: "hellaswag, piqa".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace skein {

// What stands between commas, without blanks around it; what is empty is left out.
std::vector<std::string> names_of_list(std::string_view list);

}  // namespace skein
