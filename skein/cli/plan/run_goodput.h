// `skein plan --goodput` at the command line: a line of progress on a terminal, then the result.
#pragma once

#include "skein/plan/goodput/scenario.h"

namespace skein {

void run_goodput(const GoodputScenario& scenario, bool json);

}  // namespace skein
