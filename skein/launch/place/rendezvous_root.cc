#include "skein/launch/place/rendezvous_root.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "skein/base/numbers/hash.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/store/signed_store.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

// Runs without a prefix of their own do not meet each other in one etcd.
std::string with_prefix(const std::string& rendezvous, const fs::path& run_dir) {
  if (!is_etcd_address(rendezvous)) return rendezvous;
  const size_t after_scheme = rendezvous.find("://") + 3;
  if (rendezvous.find('/', after_scheme) != rendezvous.npos) return rendezvous;
  const std::string run = fs::absolute(run_dir).lexically_normal().string();
  return fmt::format("{}/skein/{:016x}", rendezvous, hash_name(run));
}

fs::path own_folder(const fs::path& run_dir) { return run_dir / "rendezvous"; }

}  // namespace

std::string rendezvous_text(const std::string& rendezvous, const fs::path& run_dir) {
  return rendezvous.empty() ? own_folder(run_dir).string() : with_prefix(rendezvous, run_dir);
}

RendezvousRoot rendezvous_root(const std::string& rendezvous, const std::string& secret_file,
                               const fs::path& run_dir, const EtcdAccess& access) {
  const std::string where = rendezvous_text(rendezvous, run_dir);
  std::unique_ptr<StoreRoot> root = store_root(where, access);
  const fs::path folder = is_etcd_address(where) ? own_folder(run_dir) : fs::path(where);
  auto secret = std::make_shared<const JobSecret>(JobSecret::find(secret_file, folder / "secret"));
  return {.store = signed_root(std::move(root), *secret), .secret = secret};
}

void check_rendezvous(const std::string& rendezvous, const fs::path& run_dir,
                      const EtcdAccess& access) {
  if (!is_etcd_address(rendezvous)) return;
  for (const std::string& warning : access.warnings) log::warn("{}", warning);
  try {
    store_root(rendezvous_text(rendezvous, run_dir), access)->check();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kUsage) throw;
  }
}

void when_store_answers(double patience_s, const std::function<void()>& use) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(patience_s);
  auto pause = std::chrono::milliseconds(200);
  for (bool told = false;; told = true) {
    try {
      use();
      if (told) log::info("the rendezvous store answers");
      return;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo || Clock::now() >= deadline) throw;
      if (!told) {
        log::warn("the rendezvous store does not answer, and is waited for up to {}: {}",
                  format_duration(patience_s), error.what());
      }
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(2000));
  }
}

}  // namespace skein
