#include "skein/cli/plan/run_goodput.h"

#include <fmt/format.h>

#include <cstdio>

#include "skein/base/text/log.h"
#include "skein/cli/shared/command.h"

namespace skein {

void run_goodput(const GoodputScenario& scenario, bool json) {
  int shown = -1;
  const bool on_terminal = log::on_terminal();
  const GoodputResult result = simulate_goodput(scenario.options, [&](double share) {
    const int percent = static_cast<int>(100 * share);
    if (!on_terminal || percent == shown) return;
    shown = percent;
    fmt::print(stderr, "\rsimulated {} %", percent);
  });
  if (shown >= 0) fmt::print(stderr, "\r\033[K");
  if (json) {
    print_json(goodput_to_json(scenario, result));
  } else {
    fmt::print("{}", goodput_to_text(scenario, result));
  }
}

}  // namespace skein
