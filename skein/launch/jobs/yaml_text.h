// JSON as YAML for people: blocks, words without quotes, texts of several lines as they are.
//
// Every YAML 1.1 and 1.2 reader takes the result for the same value.
#pragma once

#include <string>

#include "skein/base/text/json.h"

namespace skein {

std::string yaml_text(const OrderedJson& value);

}  // namespace skein
