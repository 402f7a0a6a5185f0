#include "skein/jinja/values/budget.h"

#include <fmt/format.h>

namespace skein::jinja {

void Budget::refuse_steps() const {
  throw Refusal(fmt::format("the template takes more than {} steps", limits_.max_steps));
}

void Budget::refuse_bytes() const {
  throw Refusal(fmt::format("the template makes more than {} bytes of values", limits_.max_bytes));
}

}  // namespace skein::jinja
