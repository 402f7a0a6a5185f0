// The version of Skein and how it was built.
#pragma once

#include <string>

#include "skein/base/json.h"

namespace skein {

// {"version", "compiler", "build", "architecture", "address_sanitizer", "cpu"}: the last is the
// kind of kernels on this machine (ops/simd/cpu_kind.h)
OrderedJson version_json();

// Two lines; the second has no line break.
std::string version_text();

}  // namespace skein
