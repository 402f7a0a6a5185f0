// Measures the memory bandwidth of this machine: bytes read plus bytes written per second, when all
// OpenMP threads copy buffers far larger than its caches.
#pragma once

namespace skein {

// Takes about `seconds`; uses 128 MiB while it runs.
double measure_copy_bytes_per_s(double seconds);

}  // namespace skein
