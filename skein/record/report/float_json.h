// The double that prints with a float's own digits; null for a float that is not finite.
#pragma once

#include <cmath>

#include "skein/base/text/json.h"

namespace skein {

inline OrderedJson float_json(float value) {
  if (!std::isfinite(value)) return nullptr;
  return OrderedJson::parse(json_float(value)).get<double>();
}

}  // namespace skein
