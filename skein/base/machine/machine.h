// This machine and its clock, as a run writes them down. Wall clocks are set, and differ between
// machines; the time since a machine booted does neither, and goes on while it sleeps.
#pragma once

#include <cstdint>
#include <string>

namespace skein {

// SKEIN_NODE, else the node that Slurm names, else the name of the host: letters, digits, '-', '_'
// and '.', 128 at most; any other character is '_'.
std::string node_name();

// The first digits of the kernel's name for this boot; "" where it gives none.
const std::string& boot_name();

// CLOCK_BOOTTIME, to the microsecond.
double boot_seconds();

// When this process was started, on the same clock, to 10 ms.
double process_start_seconds();

// The most memory that this process has had in the machine's own memory at once; 0: not known.
int64_t peak_resident_bytes();

}  // namespace skein
