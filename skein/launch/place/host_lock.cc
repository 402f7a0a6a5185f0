#include "skein/launch/place/host_lock.h"

#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <random>

#include "skein/base/error.h"
#include "skein/base/machine/machine.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/shared/file_lock.h"
#include "skein/store/key_value_store.h"

namespace skein {
namespace {

// Unlike in what a run writes down, another name than the one that was given will not do.
std::string checked_node_name() {
  const char* given = std::getenv("SKEIN_NODE");
  std::string name = node_name();
  if (given != nullptr && *given != '\0' && name != given) {
    fail(ErrorCode::kUsage,
         "SKEIN_NODE is \"{}\": expected at most 128 letters, digits, '-', '_' and '.'",
         std::string(given).substr(0, 200));
  }
  return name;
}

bool is_number(std::string_view text, std::string_view digits) {
  return !text.empty() && text.find_first_not_of(digits) == text.npos;
}

// "node7.4711-0123456789abcdef", as HostLock makes it: nothing else is believed.
bool is_name_of(const std::string& node, std::string_view text) {
  constexpr size_t kRandomDigits = 16;
  if (!text.starts_with(node + ".")) return false;
  text.remove_prefix(node.size() + 1);
  const size_t dash = text.find('-');
  return dash != text.npos && is_number(text.substr(0, dash), "0123456789") &&
         text.size() - dash - 1 == kRandomDigits &&
         is_number(text.substr(dash + 1), "0123456789abcdef");
}

// What the file says of the supervisor before; empty: nothing that this node wrote.
std::string name_in(const FileDescriptor& file, const fs::path& path, const std::string& node) {
  constexpr int64_t kMostBytes = 1024;
  const std::string text = read_file(file, path, kMostBytes);
  return is_name_of(node, text) ? text : "";
}

// Opens and locks the file of that name. One that was removed meanwhile is somebody's who has left.
FileDescriptor lock_file(const OwnFolder& folder, const std::string& name,
                         const std::string& node) {
  const fs::path path = folder.path() / name;
  std::string holder;
  for (int tries = 0; tries < 100; ++tries) {
    FileDescriptor file = folder.open(name);
    const Locked locked = try_lock(file, LOCK_EX, path,
                                   "two `skein train` of one run on this machine would not notice "
                                   "each other; let TMPDIR name a folder on a local disk");
    if (locked != Locked::kBusy && folder.still_names(name, file)) return file;
    if (locked == Locked::kBusy) holder = name_in(file, path, node);
    ::usleep(100'000);  // the workers of a supervisor that was killed may be about to end
  }
  fail(ErrorCode::kBusy,
       "another `skein train` of this run is on this machine as {}: stop it, or give each another "
       "name in SKEIN_NODE",
       holder.empty() ? node : holder);
}

}  // namespace

HostLock::HostLock(const std::string& rendezvous, const std::string& start_id) {
  const std::string node = checked_node_name();
  // In containers process numbers repeat.
  std::random_device random;
  host_ = fmt::format("{}.{}-{:08x}{:08x}", node, ::getpid(), random(), random());
  std::string key = is_etcd_address(rendezvous)
                        ? rendezvous
                        : fs::absolute(rendezvous).lexically_normal().string();
  if (!start_id.empty()) key += "/" + start_id;
  name_ = fmt::format("{}-{:016x}.lock", node, hash_name(key));
  file_ = lock_file(folder_, name_, node);
  const fs::path path = folder_.path() / name_;
  succeeds_ = name_in(file_, path, node);
  if (::ftruncate(file_.get(), 0) != 0 || ::lseek(file_.get(), 0, SEEK_SET) != 0) {
    fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
  }
  write_all(file_.get(), std::as_bytes(std::span(host_)), path);
}

HostLock::~HostLock() { folder_.remove(name_); }

}  // namespace skein
