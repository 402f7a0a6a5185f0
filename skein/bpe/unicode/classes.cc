#include "skein/bpe/unicode/classes.h"

#include <vector>

#include "skein/bpe/unicode/code_point_table.h"

namespace skein::bpe {
namespace {

constexpr CodePointRange<Class> kRanges[] = {
#include "skein/bpe/unicode/ranges.inc"
};

}  // namespace

const Class* unicode_classes() {
  static const std::vector<Class> classes = code_point_table<Class>(kRanges, Class::kOther);
  return classes.data();
}

}  // namespace skein::bpe
