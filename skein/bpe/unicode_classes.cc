#include "skein/bpe/unicode_classes.h"

#include <algorithm>
#include <vector>

namespace skein::bpe {
namespace {

struct Range {
  char32_t first, last;
  Class its_class;
};

constexpr Range kRanges[] = {
#include "skein/bpe/unicode_ranges.inc"
};

}  // namespace

const Class* unicode_classes() {
  static const std::vector<Class> classes = [] {
    std::vector<Class> table(0x110000, Class::kOther);
    for (const Range& range : kRanges) {
      std::fill(table.begin() + range.first, table.begin() + range.last + 1, range.its_class);
    }
    return table;
  }();
  return classes.data();
}

}  // namespace skein::bpe
