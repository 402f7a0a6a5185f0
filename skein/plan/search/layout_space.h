// The layouts that `skein plan --search` considers, in a few numbers each.
#pragma once

#include <cstdint>
#include <functional>

#include "skein/plan/plan.h"

namespace skein {

struct LayoutChoice {
  int64_t tensor = 1, pipeline = 1, context = 1;
  int64_t micro_sequences = 1;
  int64_t virtual_stages = 1;
  int64_t zero = 1;
  int64_t data = 1;  // what the other degrees leave
  RecomputePolicy recompute = RecomputePolicy::kNone;
  bool pairs = false;
};

// The request's configuration with this layout.
Config config_of(const PlanRequest& request, const LayoutChoice& choice);

struct LayoutVisitor {
  std::function<void(const LayoutChoice&, const ParallelLayout&)> accept;
  // Of layouts that model or batch rule out.
  std::function<void(const char* reason, const char* example)> refuse;
};

// Goes through all degrees, in a fixed order.
void for_each_layout(const PlanRequest& request, const LayoutVisitor& visitor);

}  // namespace skein
