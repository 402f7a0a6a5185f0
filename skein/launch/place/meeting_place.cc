#include "skein/launch/place/meeting_place.h"

#include <algorithm>
#include <charconv>

#include "skein/base/error.h"
#include "skein/supervise/rendezvous_store.h"

namespace skein {
namespace {

constexpr std::string_view kStart = "start-";

std::string name_of(int start) { return fmt::format("{}{:04}", kStart, start); }

// The highest number of a start, or 0.
int newest_start(StoreRoot& rendezvous) {
  int newest = 0;
  for (const std::string& name : rendezvous.places()) {
    if (!name.starts_with(kStart)) continue;
    int number = 0;
    const char* last = name.data() + name.size();
    const auto [stop, wrong] = std::from_chars(name.data() + kStart.size(), last, number);
    if (wrong == std::errc() && stop == last) newest = std::max(newest, number);
  }
  return newest;
}

}  // namespace

MeetingPlace meeting_place(StoreRoot& rendezvous, const std::string& start_id) {
  const auto place = [&](const std::string& start) {
    return MeetingPlace{start, rendezvous.open(start + "/machines")};
  };
  if (!start_id.empty()) return place(start_id);
  const int newest = newest_start(rendezvous);
  if (newest > 0) {
    try {
      MeetingPlace found = place(name_of(newest));
      const std::optional<GenerationRecord> last = newest_generation(found.store);
      if (!last || !last->verdict) return found;
    } catch (const Error& error) {  // of a start that has lapsed
      if (error.code() != ErrorCode::kNotFound) throw;
    }
  }
  return place(name_of(newest + 1));
}

}  // namespace skein
