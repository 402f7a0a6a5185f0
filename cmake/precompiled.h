// Parsed once for all sources (cmake/SkeinRoom.cmake); no source may count on it.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

// Its literal ""_json is an inline function: every source that sees it instantiates the whole
// parser, 0.5 to 0.8 s each. Here it is only declared, and its body is that of a template that
// nobody uses.
#define JSON_USE_GLOBAL_UDLS 0
#define _json                      \
  _json(const char*, std::size_t); \
  template <typename>              \
  nlohmann::json not_instantiated
#include <nlohmann/json.hpp>
#undef _json
