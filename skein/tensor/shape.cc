#include "skein/tensor/shape.h"

#include <fmt/ranges.h>

namespace skein {

std::string Shape::to_string() const { return fmt::format("[{}]", fmt::join(dims_, ", ")); }

}  // namespace skein
