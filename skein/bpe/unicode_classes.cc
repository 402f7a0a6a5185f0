#include "skein/bpe/unicode_classes.h"

#include <vector>

#include "skein/bpe/code_point_table.h"

namespace skein::bpe {
namespace {

constexpr CodePointRange<Class> kRanges[] = {
#include "skein/bpe/unicode_ranges.inc"
};

}  // namespace

const Class* unicode_classes() {
  static const std::vector<Class> classes = code_point_table<Class>(kRanges, Class::kOther);
  return classes.data();
}

}  // namespace skein::bpe
