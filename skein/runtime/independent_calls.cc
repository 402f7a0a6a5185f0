#include "skein/runtime/independent_calls.h"

#include <algorithm>

namespace skein {
namespace {

bool overlap(const View& a, const View& b) {
  if (a.data == nullptr || b.data == nullptr) return false;
  if (!a.is_contiguous() || !b.is_contiguous()) return true;
  const char* const at_a = a.as<const char>();
  const char* const at_b = b.as<const char>();
  return at_a < at_b + b.num_bytes() && at_b < at_a + a.num_bytes();
}

bool writes_what_the_other_uses(const KernelCall& writer, const KernelCall& other) {
  return std::any_of(writer.outputs.begin(), writer.outputs.end(), [&](const View& output) {
    const auto is_in = [&](const View& view) { return overlap(output, view); };
    return std::any_of(other.inputs.begin(), other.inputs.end(), is_in) ||
           std::any_of(other.outputs.begin(), other.outputs.end(), is_in);
  });
}

}  // namespace

size_t num_independent(const std::vector<const KernelCall*>& calls) {
  for (size_t i = 1; i < calls.size(); ++i) {
    for (size_t before = 0; before < i; ++before) {
      if (writes_what_the_other_uses(*calls[i], *calls[before]) ||
          writes_what_the_other_uses(*calls[before], *calls[i])) {
        return i;
      }
    }
  }
  return calls.size();
}

}  // namespace skein
