#include "skein/checkpoint/format/timeline.h"

#include <fmt/chrono.h>

#include <ctime>
#include <random>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {
namespace {

constexpr size_t kMaxIdCharacters = 100;

const Json& get(const Json& json, const char* key, const std::string& where) {
  const auto found = json.find(key);
  if (found == json.end()) fail(ErrorCode::kInvalid, "{}: key \"{}\" is missing", where, key);
  return *found;
}

std::string text(const Json& json, const char* key, const std::string& where) {
  const Json& value = get(json, key, where);
  if (!value.is_string()) {
    fail(ErrorCode::kInvalid, "{}: {} is {}, expected a text", where, key, value.type_name());
  }
  return value.get<std::string>();
}

std::string id(const Json& json, const std::string& where) {
  std::string found = text(json, "run_id", where);
  if (found.size() > kMaxIdCharacters ||
      found.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-") != found.npos) {
    fail(ErrorCode::kInvalid, "{}: run_id is \"{}\", expected up to {} of a-z, 0-9, _ and -", where,
         found.substr(0, kMaxIdCharacters), kMaxIdCharacters);
  }
  return found;
}

int64_t count(const Json& json, const char* key, const std::string& where) {
  const Json& value = get(json, key, where);
  if (!value.is_number_integer() || value.get<int64_t>() < 0) {
    fail(ErrorCode::kInvalid, "{}: {} is {}, expected an integer of 0 or more", where, key,
         value.is_number() ? json_text(value) : value.type_name());
  }
  return value.get<int64_t>();
}

void check_keys(const Json& json, size_t expected, const std::string& where) {
  if (!json.is_object()) {
    fail(ErrorCode::kInvalid, "{}: found {}, expected an object", where, json.type_name());
  }
  if (json.size() > expected) {
    fail(ErrorCode::kInvalid, "{}: {} keys, expected {}: unknown keys are not allowed", where,
         json.size(), expected);
  }
}

}  // namespace

std::string new_run_id() {
  std::random_device random;
  return fmt::format("{:%Y%m%dt%H%M%S}-{:08x}", fmt::gmtime(std::time(nullptr)), random());
}

bool same_timeline(const Timeline& a, const Timeline& b) {
  if (a.number != b.number) return false;
  return a.run_id == b.run_id || (a.number == 0 && (a.run_id.empty() || b.run_id.empty()));
}

Json timeline_json(const Timeline& timeline) {
  Json json = {{"run_id", timeline.run_id}, {"number", timeline.number}, {"parent", nullptr}};
  if (const auto& parent = timeline.parent) {
    json["parent"] = {{"run_id", parent->run_id}, {"step", parent->step}, {"path", parent->path}};
  }
  return json;
}

Timeline parse_timeline(const Json& json, const std::string& where) {
  check_keys(json, 3, where);
  Timeline timeline;
  timeline.run_id = id(json, where);
  timeline.number = count(json, "number", where);
  const Json& parent = get(json, "parent", where);
  if (parent.is_null()) return timeline;
  const std::string inside = where + ": parent";
  check_keys(parent, 3, inside);
  timeline.parent = {id(parent, inside), count(parent, "step", inside),
                     text(parent, "path", inside)};
  return timeline;
}

}  // namespace skein
