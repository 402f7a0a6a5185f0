#include "skein/runtime/pjrt/executions_in_flight.h"

#include "skein/base/error.h"

namespace skein {

void ExecutionsInFlight::started(std::string what, PjrtEvent end) {
  in_flight_.push_back({std::move(what), std::move(end)});
  while (std::ssize(in_flight_) > most_) finish_oldest();
}

void ExecutionsInFlight::finish() {
  while (!in_flight_.empty()) finish_oldest();
}

void ExecutionsInFlight::finish_oldest() {
  const Execution oldest = std::move(in_flight_.front());
  in_flight_.pop_front();
  try {
    oldest.end.wait();
  } catch (const Error& error) {
    if (failure_.empty()) failure_ = fmt::format("{}: {}", oldest.what, error.what());
    throw Error(error.code(), failure_);
  }
}

std::string ExecutionsInFlight::failure() {
  while (failure_.empty() && !in_flight_.empty()) {
    try {
      finish_oldest();
    } catch (const Error&) {
      // It is failure_ now.
    }
  }
  return failure_;
}

}  // namespace skein
