// `skein plan --search` at the command line: how far it is on standard error, and the best so far
// where the time is up, or Ctrl-C or SIGTERM ends it.
//
// Signals  SIGINT and SIGTERM end the search; what it found is printed, and the process ends by the
//          signal, as one that has not handled it. A second one ends it at once. What was ignored
//          stays ignored.
#pragma once

#include "skein/plan/search/layout_search.h"

namespace skein {

int run_search(const PlanRequest& request, double most_seconds, bool json);

}  // namespace skein
