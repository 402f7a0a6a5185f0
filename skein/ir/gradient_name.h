// The names of gradient sums: "grad.<parameter>", and "grad.<parameter>/<scope>" for what a further
// scope that uses the parameter adds up by itself.
#pragma once

#include <string>
#include <string_view>

namespace skein {

std::string gradient_name(std::string_view parameter, std::string_view scope = {});

struct GradientName {
  std::string_view parameter;
  std::string_view scope;  // empty: the first scope that uses the parameter
};
// Views into `name`. Throws Error{kInternal} for a name of anything else.
GradientName parse_gradient_name(std::string_view name);

}  // namespace skein
