// How long OpenMP's threads wait awake for the next piece of work.
//
// By itself libgomp lets them spin for some milliseconds. Beside another busy process that is the
// time which the thread they wait for needs: on two cores of an Intel Xeon with AMX, one of them
// shared, training kept 17 % of its speed, and keeps 46 % with spins of a fraction of a millisecond
// (bench/compare_torch.sh, BUSY=1), which cost no more than the noise where nothing else runs.
#pragma once

namespace skein {

// Starts this program again with GOMP_SPINCOUNT set, which libgomp reads when it is loaded and the
// programs that this one starts inherit; to be called before there is a thread or anything to lose.
// Costs a start of the program, some 20 ms. Where that or OMP_WAIT_POLICY is set nothing is done;
// where the program cannot be started again, nothing but setting it.
void spin_briefly(char** argv);

}  // namespace skein
