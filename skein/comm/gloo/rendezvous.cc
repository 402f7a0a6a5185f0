#include "skein/comm/gloo/rendezvous.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/units.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr std::string_view kTable = "table";
constexpr auto kLongestPause = std::chrono::microseconds(250'000);  // between two polls

// Ranks of one host with the same namespace share a loopback interface.
std::string network_namespace() {
  std::error_code ignored;
  return fs::read_symlink("/proc/self/ns/net", ignored).string();
}

// Creates the folder, before members are constructed that use it.
const std::string& make_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    fail(errno_code(error.value()), "cannot make the rendezvous folder '{}': {}", folder,
         error.message());
  }
  return folder;
}

// Writes the file under another name and renames it, so that readers see it whole or not at all.
// Not safe against a power cut, after which the start is repeated anyway.
void write_whole(const fs::path& path, std::string_view text) {
  const fs::path unfinished = path.string() + ".tmp";
  {
    const FileDescriptor file(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
    if (file.get() < 0) {
      fail(errno_code(errno), "cannot write {}: {}", unfinished.string(), errno_text(errno));
    }
    write_all(file.get(), std::as_bytes(std::span(text)), unfinished);
  }
  fs::rename(unfinished, path);
}

// Opens for reading; -1 if there is no such file. The folder is opened first: over NFS this makes
// the client ask the server again about a name that it recently found missing.
FileDescriptor open_now(const fs::path& path) {
  const FileDescriptor folder(
      ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return FileDescriptor(::openat(folder.get(), path.filename().c_str(), O_RDONLY | O_CLOEXEC));
}

std::optional<std::string> read_whole(const fs::path& path) {
  if (open_now(path).get() < 0) return std::nullopt;
  return read_file(path);
}

}  // namespace

bool wait_until(const std::function<bool()>& done, Clock::time_point deadline) {
  auto pause = std::chrono::microseconds(500);
  while (!done()) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    std::this_thread::sleep_for(std::min<Clock::duration>(pause, deadline - now));
    pause = std::min(pause * 3 / 2, kLongestPause);
  }
  return true;
}

Rendezvous::Rendezvous(const WorldOptions& options, std::string host)
    : options_(options),
      host_(std::move(host)),
      deadline_(Clock::now() + milliseconds(static_cast<int64_t>(options.start_timeout_s * 1e3))),
      node_(make_folder(options.rendezvous), host_, options.rank, options.size) {}

std::string Rendezvous::this_host() {
  std::string boot = read_file_if_any("/proc/sys/kernel/random/boot_id");
  while (!boot.empty() && boot.back() == '\n') boot.pop_back();
  return boot;
}

fs::path Rendezvous::file_of(const char* kind, int rank) const {
  return fs::path(options_.rendezvous) / fmt::format("{}-{:05d}", kind, rank);
}

milliseconds Rendezvous::time_left() const {
  return std::max(milliseconds(1),
                  std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now()));
}

std::string Rendezvous::missing_text(const std::vector<int>& missing) const {
  constexpr size_t kNamed = 8;
  std::string names;
  for (size_t i = 0; i < missing.size() && i < kNamed; ++i) {
    names += fmt::format("{}{}", i == 0 ? "" : ", ", missing[i]);
  }
  if (missing.size() > kNamed) names += fmt::format(" and {} more", missing.size() - kNamed);
  const bool one = missing.size() == 1;
  return fmt::format(
      "rank{} {} of {} did not arrive within {}: see {} log{}, and whether every worker has the "
      "same rendezvous folder ('{}')",
      one ? "" : "s", names, options_.size, format_duration(options_.start_timeout_s),
      one ? "its" : "their", one ? "" : "s", options_.rendezvous);
}

void Rendezvous::fail_missing() const {
  std::vector<int> missing;
  std::error_code error;
  for (int rank = 0; rank < options_.size; ++rank) {
    if (!fs::exists(file_of("arrived", rank), error)) missing.push_back(rank);
  }
  if (missing.empty()) missing = {0};  // rank 0 did not publish the table
  fail(ErrorCode::kPeerLost, "{}", missing_text(missing));
}

std::string Rendezvous::collect() const {
  const std::string mine = read_file(file_of("arrived", 0));
  std::vector<bool> known(static_cast<size_t>(options_.size));
  int num_known = 0;
  bool one_host = true;
  std::string wrong;
  const auto look = [&] {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(options_.rendezvous)) {
      names.insert(entry.path().filename().string());
    }
    for (int rank = 0; rank < options_.size && wrong.empty(); ++rank) {
      const fs::path file = file_of("arrived", rank);
      if (known[static_cast<size_t>(rank)] || !names.contains(file.filename().string())) continue;
      const std::string theirs = read_file(file);
      const std::string size = theirs.substr(0, theirs.find(' '));
      if (size != fmt::to_string(options_.size)) {
        wrong = fmt::format("rank {} was started in a world of {} ranks, rank 0 in a world of {}",
                            rank, size, options_.size);
      }
      one_host = one_host && theirs == mine;
      known[static_cast<size_t>(rank)] = true;
      ++num_known;
    }
    return num_known == options_.size || !wrong.empty();
  };
  if (!wait_until(look, deadline_)) fail_missing();
  return wrong.empty() ? fmt::format("{} {}", options_.size, one_host ? 1 : 0) : wrong;
}

bool Rendezvous::arrive() {
  const fs::path arrived = file_of("arrived", options_.rank);
  if (fs::exists(arrived)) {
    fail(
        ErrorCode::kUsage,
        "rank {} is already in the rendezvous folder '{}': give each start a fresh folder and each "
        "worker its own rank",
        options_.rank, options_.rendezvous);
  }
  write_whole(arrived, fmt::format("{} {} {}", options_.size, host_, network_namespace()));
  const fs::path table = fs::path(options_.rendezvous) / kTable;
  if (options_.rank == 0) {
    const std::string all = collect();
    write_whole(table, all);
    node_.put_table(all);
  }
  std::optional<std::string> text;
  const auto look = [&] {
    if (const auto known = node_.find_table()) {
      text.emplace(known->begin(), known->end());
    } else if (node_.may_look(options_.size) && (text = read_whole(table))) {
      node_.put_table(*text);
    }
    return text.has_value();
  };
  if (!wait_until(look, deadline_)) fail_missing();
  if (text->find_first_not_of("0123456789 ") != text->npos) {
    // The folder may be removed when rank 0 ends, so give the others time to read it.
    if (options_.rank == 0) std::this_thread::sleep_for(4 * kLongestPause);
    fail(ErrorCode::kUsage, "{}", *text);
  }
  const std::string size = text->substr(0, text->find(' '));
  if (size != fmt::to_string(options_.size)) {
    fail(ErrorCode::kUsage, "rank 0 was started in a world of {} ranks, rank {} in a world of {}",
         size, options_.rank, options_.size);
  }
  node_.all_met();
  return text->ends_with(" 1");
}

void Rendezvous::publish_addresses(const std::map<int, std::vector<char>>& addresses) {
  const fs::path path = file_of("addresses", options_.rank);
  const FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::vector<int>& members = node_.members();
  for (const auto& [peer, address] : addresses) {
    if (!Record(address).write(file.get(), peer * int64_t{sizeof(Record)})) {
      fail(errno_code(errno), "cannot write {}: {}", path.string(), errno_text(errno));
    }
    if (std::binary_search(members.begin(), members.end(), peer)) {
      node_.put(peer, options_.rank, address);
    }
  }
}

std::optional<std::vector<char>> Rendezvous::address_of(int rank) {
  if (auto known = node_.find(options_.rank, rank)) return known;
  if (!node_.may_look(rank)) return std::nullopt;
  ++num_looks_;
  const FileDescriptor file = open_now(file_of("addresses", rank));
  std::optional<std::vector<char>> own;
  for (const int reader : node_.members()) {
    auto address = Record::read(file.get(), reader * int64_t{sizeof(Record)});
    if (!address) continue;
    node_.put(reader, rank, *address);
    if (reader == options_.rank) own = std::move(address);
  }
  return own;
}

void Rendezvous::publish_cause(const std::string& cause) noexcept {
  try {
    const fs::path path = file_of("cause", options_.rank);
    if (!fs::exists(path)) write_whole(path, cause);
  } catch (const std::exception&) {  // the folder may be gone; the caller throws the cause anyway
  }
}

std::optional<std::string> Rendezvous::cause_of(int rank, milliseconds moment) const noexcept {
  try {
    std::optional<std::string> cause;
    wait_until([&] { return (cause = read_whole(file_of("cause", rank))).has_value(); },
               Clock::now() + moment);
    return cause;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace skein
