// How the configuration's device compiles programs, and where it keeps them.
//
// Folder  device.compile_cache; where that is empty or a URL of a bucket, $SKEIN_CACHE/compiled,
//         else $XDG_CACHE_HOME/skein/compiled, else ~/.cache/skein/compiled
#pragma once

#include "skein/config/config.h"
#include "skein/runtime/compiler_settings.h"

namespace skein {

CompilerSettings compiler_settings(const Config& config);

}  // namespace skein
