// Where the machines of a run meet.
//
// Place   <rendezvous>/<start>/machines (supervise/rendezvous_store.h). A launcher names the start;
//         machines that are started by hand join the newest one that has not ended, or begin the
//         next: start-0001, start-0002, ...
// Errors  those of the store
#pragma once

#include <memory>
#include <string>

#include "skein/store/key_value_store.h"

namespace skein {

struct MeetingPlace {
  std::string start_id;
  std::shared_ptr<KeyValueStore> store;
};

// `start_id`: of the launcher; empty: there is none.
MeetingPlace meeting_place(StoreRoot& rendezvous, const std::string& start_id);

}  // namespace skein
