// The version of Skein, as checkpoints, exports and `skein version` show it.
#pragma once

namespace skein {

inline constexpr const char kVersion[] = "0.1.0";

}  // namespace skein
