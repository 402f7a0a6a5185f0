// How long OpenMP's threads wait awake for the next piece of work.
//
// By itself libgomp lets them spin for some milliseconds. Beside another busy process that is the
// time which the thread they wait for needs: on two cores of an Intel Xeon with AMX, one of them
// shared, training kept 17 % of its speed, and keeps 46 % with spins of a fraction of a millisecond
// (bench/compare_torch.sh, BUSY=1), which cost no more than the noise where nothing else runs.
#pragma once

namespace skein {

// Replaces this process by the same program with GOMP_SPINCOUNT set: libgomp reads it once, when it
// is loaded, and child processes inherit it. Call it before the first thread starts and before any
// work is done; it does not return unless one of these holds:
//   GOMP_SPINCOUNT or OMP_WAIT_POLICY is set already, as it is after the restart: nothing changes
//   exec fails: the variable is set, for child processes alone
// Cost  one start of the program, some 20 ms
void restart_with_short_spins(char** argv);

}  // namespace skein
