// What is configured of a host's supervisor.
#pragma once

#include <string>

#include "skein/supervise/membership.h"

namespace skein {

struct SupervisorOptions {
  std::string host;      // HostRecord::host
  std::string succeeds;  // HostRecord::succeeds
  int workers = 1;
  std::string replicas;  // HostRecord::replicas
  MembershipOptions membership;
  Millis beat = 1'000;  // between exchanges with the store while nothing happens
  Millis poll = 100;    // at least, while a generation ends or begins
  // Looks are a beat apart again once nothing has changed for so long.
  Millis patience = 30'000;
  Millis hang = 300'000;
  Millis stacks = 2'000;  // for the stacks of a hanging worker to be written
  Millis grace = 5'000;
  // A generation trains at least so long before it stops for a newcomer, and twice as long for
  // each stop before it, in a row, that gained none.
  Millis regroup = 10'000, max_regroup = 600'000;
  Millis check = 10'000;  // a host whose check takes longer is sick
  int stages = 1;         // of the pipeline: stragglers are sought among ranks of one stage
  Millis first_recheck = 5'000, max_recheck = 60'000;  // of a sick host
  Millis forget_sickness = 600'000;  // one time of being sick counts no more after so long
};

}  // namespace skein
