#include "skein/comm/gloo/rendezvous.h"

#include <unistd.h>

#include <array>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/file.h"
#include "skein/base/units.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string key_of(const char* kind, int rank) { return fmt::format("{}.{}", kind, rank); }

std::vector<char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string text_of(const std::vector<char>& bytes) { return {bytes.begin(), bytes.end()}; }

// Equal where a loopback interface is shared: same running kernel, same network namespace.
std::string network_namespace() {
  std::string boot = read_file_if_any("/proc/sys/kernel/random/boot_id");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  std::error_code ignored;
  return boot + " " + fs::read_symlink("/proc/self/ns/net", ignored).string();
}

}  // namespace

Rendezvous::Rendezvous(const WorldOptions& options)
    : options_(options),
      deadline_(Clock::now() + milliseconds(static_cast<int64_t>(options.start_timeout_s * 1e3))) {
  std::error_code error;
  fs::create_directories(options.rendezvous, error);
  if (error) {
    fail(errno_code(error.value()), "cannot make the rendezvous folder '{}': {}",
         options.rendezvous, error.message());
  }
  store_ = std::make_unique<Store>(options.rendezvous);
}

milliseconds Rendezvous::time_left() const {
  return std::max(milliseconds(1),
                  std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
}

bool Rendezvous::wait_for(const std::string& key) {
  while (!store_->has(key)) {
    if (Clock::now() >= deadline_) return false;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return true;
}

void Rendezvous::fail_missing(int first_missing, const char* kind) {
  constexpr int kNamed = 8;
  std::vector<int> missing;
  for (int rank = first_missing; rank < options_.size; ++rank) {
    if (!store_->has(key_of(kind, rank))) missing.push_back(rank);
  }
  std::string names;
  for (size_t i = 0; i < missing.size() && i < kNamed; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", missing[i]);
  }
  if (missing.size() > kNamed) names += fmt::format(" and {} more", missing.size() - kNamed);
  fail(ErrorCode::kPeerLost,
       "rank{} {} of {} did not arrive within {}: see {} log{}, and whether every worker has the "
       "same rendezvous folder ('{}')",
       missing.size() == 1 ? "" : "s", names, options_.size,
       format_duration(options_.start_timeout_s), missing.size() == 1 ? "its" : "their",
       missing.size() == 1 ? "" : "s", options_.rendezvous);
}

bool Rendezvous::arrive() {
  const std::string mine = fmt::format("{} {}", options_.size, network_namespace());
  const std::string key = key_of("arrived", options_.rank);
  if (store_->has(key)) {
    fail(
        ErrorCode::kUsage,
        "rank {} is already in the rendezvous folder '{}': give each start a fresh folder and each "
        "worker its own rank",
        options_.rank, options_.rendezvous);
  }
  store_->set(key, bytes_of(mine));
  bool one_host = true;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!wait_for(key_of("arrived", rank))) fail_missing(rank, "arrived");
    const std::string theirs = text_of(store_->get(key_of("arrived", rank)));
    const std::string size = theirs.substr(0, theirs.find(' '));
    if (size != fmt::to_string(options_.size)) {
      fail(ErrorCode::kUsage, "rank {} was started in a world of {} ranks, rank {} in one of {}",
           rank, size, options_.rank, options_.size);
    }
    one_host = one_host && theirs == mine;
  }
  return one_host;
}

void Rendezvous::publish_addresses(const std::vector<char>& bytes) {
  store_->set(key_of("addresses", options_.rank), bytes);
}

std::vector<char> Rendezvous::wait_for_addresses(int rank) {
  if (!wait_for(key_of("addresses", rank))) fail_missing(rank, "addresses");
  return store_->get(key_of("addresses", rank));
}

void Rendezvous::publish_cause(const std::string& cause) noexcept {
  try {
    const std::string key = key_of("cause", options_.rank);
    if (!store_->has(key)) store_->set(key, bytes_of(cause));
  } catch (const std::exception&) {  // the folder may be gone; the cause is thrown here anyway
  }
}

std::optional<std::string> Rendezvous::cause_of(int rank) noexcept {
  // A rank whose deadline passed closes its connections a moment before it can say why.
  constexpr auto kMoment = milliseconds(100);
  const auto until = Clock::now() + kMoment;
  try {
    const std::string key = key_of("cause", rank);
    while (!store_->has(key)) {
      if (Clock::now() >= until) return std::nullopt;
      std::this_thread::sleep_for(milliseconds(2));
    }
    return text_of(store_->get(key));
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace skein
