// Measures the memory bandwidth of this machine: bytes read plus bytes written per second, when all
// OpenMP threads copy buffers far larger than its caches at the same time.
//
// Method   each thread's bytes over its own processor time, the median of its pieces, added over
//          the threads: other programs on the machine take no time away, only bandwidth
// Limits   where other programs keep a thread from running, the others have its bandwidth too:
//          beside busy processes the result may be too high, by the number of threads at most
#pragma once

namespace skein {

// Takes about `seconds`, on a busy machine up to four times as long; uses 128 MiB while it runs.
double measure_copy_bytes_per_s(double seconds);

}  // namespace skein
