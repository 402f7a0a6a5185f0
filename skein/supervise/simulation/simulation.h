// A cluster in which everything goes wrong, under a seed: the supervisors are the real ones, the
// clocks, hosts, networks, the store and the training are made up. The same seed gives the same
// history, so a failure found is a test of one line.
//
// Faults      workers that crash, are killed or hang; supervisors killed or suspended; hosts that
//             lose power, with or without coming back; partitions between hosts and from the store;
//             an outage of the store; writes that take effect though they were answered with an
//             error; reads of old records; clocks that are off and run at other rates; slow hosts;
//             single calls on the store that fail (EIO, ESTALE, EACCES, EMFILE), with or without
//             effect; records that nobody, and stores that one host, cannot read for a while;
//             hosts that fall sick, whose check says so or hangs, and get well, or whose every
//             other check fails; wrong bits, once or again and again; a signal that asks to stop
// Invariants  checked after each event:
//             no two generations train at once: no step ends in one while a later one has begun
//             no committed step is lost: a generation begins at the newest commit
//             health: no generation has a host that is known to be sick
//             newcomers: training stops ever less often for hosts that are not taken in
//             progress: once all is mended, the run ends within `patience`
//             one end: every supervisor that is left ends with the same exit code
// Calls       on the store are counted, by host
// Cost        about 50 ms a simulated schedule of 5 hosts
#pragma once

#include <string>
#include <vector>

#include "skein/supervise/supervisor.h"

namespace skein {

struct SimulationOptions {
  uint64_t seed = 1;
  int num_hosts = 5;
  int workers = 2;   // a host
  int flapping = 0;  // hosts of which every other check fails, from the first to the last
  SupervisorOptions supervisor;
  int64_t steps = 400;
  Millis step = 1'000;
  int64_t save_every = 10;
  Millis start = 3'000;  // of a worker, to be ready
  Millis collective_timeout = 60'000;
  Millis trouble = 600'000;     // for how long faults happen
  Millis fault_every = 30'000;  // on average
  Millis patience = 1'800'000;  // for the run to end after that
  bool has_slow_calls = true;   // on the store: one of 100
  // Calls are counted until each of these times, and since the one before.
  std::vector<Millis> marks;
  Millis crash_at = 0;  // a worker of the first host, once; 0: never
  Millis end_at = 0;    // of the simulation, whatever has happened; 0: it ends with the run
};

// Of one host on the store.
struct StoreCalls {
  int64_t looks = 0;
  int64_t host_records = 0;  // read, one call each
  int64_t others = 0;        // reads of other records, listings, writes
  int64_t total() const { return host_records + others; }
};

struct SimulationResult {
  std::string violation;  // empty: the invariants held
  int exit_code = -1;
  int64_t steps = 0;  // done, those that were done again included
  int64_t generations = 0;
  int64_t faults = 0;
  int64_t events = 0;
  Millis duration = 0;
  std::vector<std::vector<StoreCalls>> calls;  // for each mark, by host
  std::vector<std::string> history;
};

// One of many clusters, small and large, with and without spare hosts, drawn by the seed.
SimulationOptions schedule_of(uint64_t seed);

SimulationResult simulate(const SimulationOptions& options);

}  // namespace skein
