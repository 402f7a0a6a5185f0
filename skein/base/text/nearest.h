// Spelling suggestions: the known name that a mistyped one most likely meant.
#pragma once

#include <span>
#include <string_view>

namespace skein {

// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`
// (optimal string alignment). Cost: |a| * |b|.
int edit_distance(std::string_view a, std::string_view b);

// The candidate nearest to `name`, the first of equals; "" where none is within a third of the
// name's length (at least two edits, or one of a name of up to three letters).
std::string_view nearest_name(std::string_view name, std::span<const std::string_view> candidates);

}  // namespace skein
