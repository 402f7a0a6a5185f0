#include "skein/checkpoint/save/shared_save.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "skein/base/files/open_file.h"
#include "skein/checkpoint/find/checkpoint_folder.h"

namespace skein {
namespace {

// A rank that gives up after it has published writes the reason only after the rename.
constexpr double kReasonSeconds = 0.2;

[[noreturn]] void fail_io(std::string_view verb, const fs::path& path, int error_number) {
  fail(errno_code(error_number), "cannot {} {}: {}", verb, path.string(), errno_text(error_number));
}

std::string part_name(int rank) { return fmt::format("part-{:05d}.bin", rank); }
std::string failure_name(int rank) { return fmt::format("failed-{:05d}", rank); }

void write_text(const fs::path& path, std::string_view text, const FileOps& ops) {
  const FileDescriptor file = ops.create(path);
  ops.write(file.get(), std::as_bytes(std::span(text)), path);
}

void write_failure(const fs::path& folder, int rank, const Error& error, const FileOps& ops) {
  write_text(folder / failure_name(rank), failure_text(error), ops);
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    paths.push_back(entry->path());
  }
  if (error && !is_absence(error.value())) fail_io("list", folder, error.value());
  std::sort(paths.begin(), paths.end());
  return paths;
}

// "rank 3: cannot write ...", as that rank wrote it; nothing if `path` is another kind of file.
std::optional<Error> read_failure(const fs::path& path) {
  const std::string name = path.filename().string();
  int rank = 0;
  const size_t prefix = std::string_view("failed-").size();
  if (!name.starts_with("failed-") ||
      std::from_chars(name.data() + prefix, name.data() + name.size(), rank).ec != std::errc()) {
    return std::nullopt;
  }
  const Result<std::string> text = try_run([&] { return read_file(path); });
  return failure_of(text.ok() ? Result<std::string>(text).value() : "", path.string(), rank);
}

// What a look at the shared folder gives. While that cannot be looked at: false, and why in
// `problem`, which is waited for.
template <typename Look>
bool look(std::string& problem, const Look& at) {
  try {
    return at();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kIo && error.code() != ErrorCode::kNotFound) throw;
    problem = fmt::format(" ({})", error.what());
    return false;
  }
}

// Returns -1 if the name is not that of a part.
int part_rank(const std::string& name) {
  int rank = -1;
  if (!name.starts_with("part-")) return -1;
  std::from_chars(name.data() + std::string_view("part-").size(), name.data() + name.size(), rank);
  return rank >= 0 && name == part_name(rank) ? rank : -1;
}

}  // namespace

SharedSave::SharedSave(SharedSaveOptions options, const FileOps& ops)
    : options_(std::move(options)), ops_(ops) {
  path_ = options_.dir / checkpoint_name(options_.step);
  partial_ = path_.string() + "." + options_.save + ".partial";
  failed_ = path_.string() + "." + options_.save + ".failed";
}

// Opening the parent first makes an NFS client ask the server again. Nothing only where no such
// folder is there: a file server that does not answer has taken nothing away.
std::optional<SharedSave::FolderId> SharedSave::folder_id(const fs::path& path) {
  const int parent = ::open(parent_folder(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (parent < 0 && !is_absence(errno)) fail_io("open", parent_folder(path), errno);
  if (parent < 0) return std::nullopt;
  const FileDescriptor opened(parent);
  struct stat status {};
  if (::fstatat(parent, path.filename().c_str(), &status, 0) != 0) {
    if (is_absence(errno)) return std::nullopt;
    fail_io("stat", path, errno);
  }
  return FolderId(status.st_dev, status.st_ino);
}

void SharedSave::open() {
  if (failed()) throw reason(Error(ErrorCode::kPeerLost, "another rank gave up"));
  ops_.make_folder(partial_);
  id_ = folder_id(partial_);
}

void SharedSave::publish(const Manifest& own) {
  const fs::path path = partial_ / part_name(options_.rank);
  const fs::path unfinished = path.string() + ".tmp";
  write_text(unfinished, part_bytes(own), ops_);
  published_ = true;  // from here on rank 0 may commit, whatever happens to this rank
  ops_.rename(unfinished, path);
}

void SharedSave::read_parts(std::vector<std::optional<SavePart>>& parts, int& num_missing) const {
  for (const fs::path& path : entries(partial_)) {
    const int rank = part_rank(path.filename().string());
    if (rank < 1 || rank >= options_.num_ranks || parts[rank]) continue;
    parts[rank].emplace(MappedFile(path));
    --num_missing;
  }
}

// The others wait longer than rank 0, because rank 0 knows which rank is late.
void SharedSave::check_patience(const Patience& patience, const std::string& waiting_for) const {
  patience.check(options_.should_abort, options_.deadline_s * (options_.rank == 0 ? 1 : 2),
                 waiting_for);
}

std::vector<SavePart> SharedSave::collect() {
  std::vector<std::optional<SavePart>> parts(options_.num_ranks);
  int num_missing = options_.num_ranks - 1;
  for (Patience patience;; patience.sleep()) {
    std::string problem;
    if (look(problem, [&] { return failed(); })) {
      throw reason(Error(ErrorCode::kPeerLost, "another rank gave up"));
    }
    look(problem, [&] { return read_parts(parts, num_missing), true; });
    if (num_missing == 0) break;
    if (look(problem, [&] { return has_vanished(); })) throw reason(vanished());
    check_patience(patience, missing_parts(parts) + problem);
  }
  std::vector<SavePart> result;
  for (int rank = 1; rank < options_.num_ranks; ++rank) result.push_back(std::move(*parts[rank]));
  return result;
}

void SharedSave::remove_parts() {
  for (int rank = 1; rank < options_.num_ranks; ++rank)
    ops_.remove_tree(partial_ / part_name(rank));
}

std::optional<Error> SharedSave::wait_for_commit() {
  try {
    Patience patience = patience_of_many(options_.rank, options_.num_ranks);
    for (;; patience.sleep(options_.should_abort)) {
      std::string problem;
      Outcome outcome = Outcome::kOpen;
      look(problem, [&] { return outcome = outcome_now(), true; });
      if (outcome == Outcome::kCommitted) return std::nullopt;
      if (outcome == Outcome::kFailed) fail(ErrorCode::kPeerLost, "another rank gave up");
      if (outcome == Outcome::kVanished) throw vanished();
      check_patience(patience, "waiting for rank 0 to commit" + problem);
    }
  } catch (const Error& error) {
    return give_up(error);
  }
}

SharedSave::Outcome SharedSave::outcome_now() const {
  // As long as the folder has its name, nobody has decided: one look of each of many ranks.
  const std::optional<FolderId> partial = folder_id(partial_);
  if (partial && partial == id_) return Outcome::kOpen;
  if (committed()) return Outcome::kCommitted;
  if (failed()) return Outcome::kFailed;
  return partial ? Outcome::kOpen : Outcome::kVanished;
}

// Whether somebody removed the folder, or moved one above it: no part can arrive any more.
bool SharedSave::has_vanished() const { return outcome_now() == Outcome::kVanished; }

Error SharedSave::vanished() const {
  return Error(ErrorCode::kPeerLost, fmt::format("{} has vanished", partial_.string()));
}

Error SharedSave::reason(const Error& unknown) const {
  for (Patience patience; patience.seconds() < kReasonSeconds; patience.sleep()) {
    std::string problem;
    std::vector<fs::path> found;
    look(problem, [&] { return found = entries(failed_), true; });
    for (const fs::path& path : found) {
      if (const auto failure = read_failure(path)) return *failure;
    }
  }
  return unknown;
}

void SharedSave::rename_to_failed(const Error& error) {
  if (published_) {  // it may be the checkpoint by now: do not touch its files
    ops_.rename(partial_, failed_);
    write_failure(failed_, options_.rank, error, ops_);
    return;
  }
  ops_.make_folder(partial_);
  const std::string own = fmt::format("-{:05d}-", options_.rank);
  try {
    for (const fs::path& path : entries(partial_)) {  // frees space for the reason
      const bool is_own = path.filename().string().find(own) != std::string::npos;
      if (is_own && path.extension() == ".safetensors") ops_.remove_tree(path);
    }
    write_failure(partial_, options_.rank, error, ops_);
  } catch (const Error&) {
    // The file's name still tells which rank it was.
  }
  ops_.rename(partial_, failed_);
}

std::optional<Error> SharedSave::give_up(const Error& error) {
  try {
    if (!committed() && !failed()) rename_to_failed(error);
  } catch (const Error&) {
    // Committed or failed meanwhile; or this rank cannot do anything, and the others' deadline ends
    // the save.
  }
  try {
    if (committed()) return std::nullopt;
    if (!failed()) return error;
    ops_.remove_tree(partial_);  // a late rank may have created it again
    for (const fs::path& path : entries(failed_)) {
      if (!read_failure(path)) ops_.remove_tree(path);
    }
  } catch (const Error&) {
    // Removed by the next save or start.
  }
  return reason(error);
}

}  // namespace skein
