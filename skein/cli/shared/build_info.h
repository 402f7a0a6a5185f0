// The version of Skein and how it was built.
#pragma once

#include <string>

#include "skein/base/text/json.h"

namespace skein {

// The commit that the sources were at, with "-dirty" where they differ from it; "unknown" where
// they are in no repository. The build writes it (cmake/write_commit.cmake).
extern const char* const kCommit;

// {"version", "commit", "compiler", "build", "architecture", "address_sanitizer", "cuda", "cpu"}:
// whether the CUDA backend is in; the kind of kernels on this machine (ops/simd/cpu_kind.h)
OrderedJson version_json();

// Two lines; the second has no line break.
std::string version_text();

}  // namespace skein
