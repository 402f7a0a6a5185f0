#include "skein/replica/worker_place.h"

#include <sys/stat.h>

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"

namespace skein {

int64_t ReplicaPlace::more_bytes(int64_t snapshot_bytes) const {
  int64_t taken = 0;
  for (const int file : kept) {
    struct stat status {};
    if (::fstat(file, &status) == 0) taken += status.st_blocks * 512;
  }
  const int64_t all = kReplicaSlots * (passes_on ? 2 : 1) * snapshot_bytes;
  return std::max<int64_t>(0, all - taken / workers);
}

std::string ReplicaPlace::text() const {
  return exact_json(OrderedJson{{"slots", slots},
                                {"kept", kept},
                                {"event", event},
                                {"passes_on", passes_on},
                                {"worker", worker},
                                {"workers", workers},
                                {"endpoint", endpoint.text()}},
                    "the place of a worker's copies");
}

ReplicaPlace ReplicaPlace::parse(const std::string& text) {
  const Json json = parse_json(text, "SKEIN_REPLICAS");
  try {
    ReplicaPlace place = {
        .slots = json.at("slots"),
        .kept = json.at("kept"),
        .event = json.at("event"),
        .passes_on = json.at("passes_on"),
        .worker = json.at("worker"),
        .workers = json.at("workers"),
        .endpoint = ReplicaEndpoint::parse(json.at("endpoint").get<std::string>())};
    const bool is_one =
        place.slots.size() == kReplicaSlots && place.worker >= 0 && place.workers > place.worker;
    if (is_one) return place;
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalid, "SKEIN_REPLICAS is not a supervisor's: {}", error.what());
  }
  fail(ErrorCode::kInvalid, "SKEIN_REPLICAS is not a supervisor's: {}", text.substr(0, 200));
}

}  // namespace skein
