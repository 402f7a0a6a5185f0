// The documents of a task, one dict a row.
#pragma once

#include <string>
#include <vector>

#include "skein/jinja/values/value.h"

namespace skein {

struct Documents {
  std::vector<std::string> features;  // the names of the columns, in order
  std::vector<jinja::Value> rows;     // dicts with a key for each column
};

}  // namespace skein
