#include "skein/checkpoint/save_failure.h"

#include <algorithm>
#include <thread>

#include "skein/base/json.h"

namespace skein {

std::string failure_text(const Error& error) {
  const Json text = {{"code", static_cast<int>(error.code())}, {"error", error.what()}};
  return text.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error failure_of(std::string_view text, const std::string& where, int rank) {
  try {
    const Json json = parse_json(text, where);
    const int code = json.at("code").get<int>();
    if (code >= 0 && code <= static_cast<int>(ErrorCode::kInternal)) {
      return Error(static_cast<ErrorCode>(code),
                   fmt::format("rank {}: {}", rank, json.at("error").get<std::string>()));
    }
  } catch (const std::exception&) {
    // Reported below.
  }
  return Error(ErrorCode::kIo, fmt::format("rank {} failed, and could not write why", rank));
}

void Patience::sleep() {
  std::this_thread::sleep_for(pause_);
  pause_ = std::min(pause_ * 2, longest_);
}

double Patience::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

void Patience::check(const std::function<bool()>& should_abort, double limit_s,
                     const std::string& waiting_for) const {
  if (should_abort && should_abort()) {
    fail(ErrorCode::kPeerLost, "the save was given up while {}", waiting_for);
  }
  if (seconds() > limit_s) {
    fail(ErrorCode::kPeerLost, "{} took longer than {} s: look at what that rank reported last",
         waiting_for, limit_s);
  }
}

}  // namespace skein
