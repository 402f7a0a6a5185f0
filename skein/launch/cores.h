// The cores of a machine, shared out to its workers.
//
// Workers that compute together wait for each other at every collective. Left to itself the system
// now and then puts two of them on one core for a few milliseconds while another core has nothing
// to do, and all the others wait: each worker is bound to cores of its own where there are enough.
#pragma once

#include <sched.h>

#include <vector>

namespace skein {

// What this thread may run on, ascending.
std::vector<int> usable_cores();

// Of worker `index` of `count`: neighbours, at least floor(cores / count) of them; none where there
// are more workers than cores.
std::vector<int> cores_of_worker(const std::vector<int>& cores, int index, int count);

// Binds the calling thread, and the threads and processes that it starts, for as long as it lives.
// Nothing where `cores` is empty, or the system refuses: it is a matter of speed alone.
class BoundToCores {
 public:
  explicit BoundToCores(const std::vector<int>& cores);
  ~BoundToCores();
  BoundToCores(const BoundToCores&) = delete;
  BoundToCores& operator=(const BoundToCores&) = delete;

 private:
  bool bound_ = false;
  cpu_set_t former_;
};

}  // namespace skein
