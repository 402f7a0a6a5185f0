#include "skein/checkpoint/save/failure.h"

#include <algorithm>
#include <cmath>
#include <thread>

#include "skein/base/ending.h"
#include "skein/base/text/json_text.h"

namespace skein {

std::string failure_text(const Error& error) {
  const Json text = {{"code", static_cast<int>(error.code())}, {"error", error.what()}};
  return json_text(text);
}

Error failure_of(std::string_view text, const std::string& where, int rank) {
  try {
    const Json json = parse_json(text, where);
    const int code = json.at("code").get<int>();
    if (code >= 0 && code < kNumErrorCodes) {
      return Error(static_cast<ErrorCode>(code),
                   fmt::format("rank {}: {}", rank, json.at("error").get<std::string>()));
    }
  } catch (const std::exception&) {
    // Reported below.
  }
  return Error(ErrorCode::kIo, fmt::format("rank {} failed, and could not write why", rank));
}

void Patience::sleep(const std::function<bool()>& should_abort) {
  constexpr std::chrono::microseconds kSlice{100'000};
  for (std::chrono::microseconds left = pause_; left.count() > 0; left -= kSlice) {
    if (left < pause_ && should_abort && should_abort()) break;
    std::this_thread::sleep_for(std::min(left, kSlice));
  }
  pause_ = std::min(pause_ * 2, longest_);
}

Patience patience_of_many(int rank, int num_ranks) {
  using std::chrono::microseconds;
  constexpr microseconds kFirst{200}, kShort{100'000}, kLong{2'000'000};
  constexpr double kGolden = 0.618033988749895;  // its multiples are spread evenly
  const double place = rank * kGolden - std::floor(rank * kGolden);
  const double mean = std::clamp(num_ranks * 500.0, 1.0 * kShort.count(), 0.85 * kLong.count());
  return {kFirst, num_ranks <= 200
                      ? kShort
                      : microseconds(static_cast<int64_t>(mean * (0.85 + 0.3 * place)))};
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
