#include "skein/replica/replica_place.h"

#include "skein/base/error.h"
#include "skein/base/json.h"

namespace skein {

std::string ReplicaPlace::text() const {
  return OrderedJson{{"slots", slots},
                     {"kept", kept},
                     {"event", event},
                     {"passes_on", passes_on},
                     {"worker", worker},
                     {"workers", workers},
                     {"endpoint", endpoint.text()}}
      .dump();
}

ReplicaPlace ReplicaPlace::parse(const std::string& text) {
  const Json json = parse_json(text, "SKEIN_REPLICAS");
  try {
    return {.slots = json.at("slots"),
            .kept = json.at("kept"),
            .event = json.at("event"),
            .passes_on = json.at("passes_on"),
            .worker = json.at("worker"),
            .workers = json.at("workers"),
            .endpoint = ReplicaEndpoint::parse(json.at("endpoint").get<std::string>())};
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalid, "SKEIN_REPLICAS is not a supervisor's: {}", error.what());
  }
}

}  // namespace skein
