// skein plan --goodput: which cluster is simulated, by whose figures, and what is said of it. The
// simulation is skein/supervise/goodput/goodput.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/plan/plan.h"
#include "skein/supervise/goodput/goodput.h"

namespace skein {

constexpr double kSecondsPerDay = 86'400;

// What was asked for on the command line; 0 or empty: not given.
struct GoodputRequest {
  std::string preset;
  double days = 0;
  int64_t failures = 0;
  double mtbf_hours = 0;  // of one rank
  int64_t spares = -1;    // -1: not given
  int64_t seed = 1;
};

// A figure that the result rests on, and whether it was measured, published or assumed.
struct Assumption {
  std::string what, value, source;
};

struct GoodputScenario {
  GoodputOptions options;
  int64_t ranks = 0;
  std::vector<Assumption> assumptions;
  std::string published;  // what the run that it stands for reports; "": nothing
};

// llama3, original, original-by-hand, llama3-with-skein
std::vector<std::string> goodput_presets();
GoodputScenario preset_scenario(const GoodputRequest& request);
// The run of `config`: times of the plan, deadlines of the configuration.
GoodputScenario planned_scenario(const GoodputRequest& request, const Config& config,
                                 const Plan& plan);

std::string goodput_to_text(const GoodputScenario& scenario, const GoodputResult& result);
OrderedJson goodput_to_json(const GoodputScenario& scenario, const GoodputResult& result);

}  // namespace skein
