// How fast this machine moves memory: bytes read plus bytes written per second, by copying buffers
// far larger than its caches on all OpenMP threads.
#pragma once

namespace skein {

// Takes about `seconds`; uses 128 MiB while it runs.
double measure_copy_bytes_per_s(double seconds);

}  // namespace skein
