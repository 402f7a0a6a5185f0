// Lists of settings to try: every combination of the values of some keys.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace skein {

// The most combinations.
inline constexpr size_t kMaxSweep = 10'000;

// What a key without a section may mean, to stand behind an error; "": nothing.
using ExplainKey = std::function<std::string(std::string_view key)>;

// `swept`: texts "section.key=V1,V2,...". Returns for each combination its "section.key=value", the
// last key changing fastest; nothing swept is one combination without settings.
// Errors  kUsage for a text of another form, an empty or repeated value, a key named twice, more
//         than kMaxSweep combinations
std::vector<std::vector<std::string>> sweep_settings(std::span<const std::string> swept,
                                                     const ExplainKey& explain_key = nullptr);

}  // namespace skein
