#include "skein/ops/cuda/algorithm_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <span>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"

namespace skein::cuda {
namespace {

std::string check_of(const std::string& key, const std::string& hex) {
  const std::string text = key + "\n" + hex;
  return xxh3_128_hex(std::as_bytes(std::span(text)));
}

std::string line_of(const std::string& key, const AlgorithmCache::Choice& choice) {
  const std::string hex = to_hex(choice.algorithm);
  OrderedJson line;
  line["key"] = key;
  line["algorithm"] = hex;
  line["microseconds"] = choice.microseconds;
  line["check"] = check_of(key, hex);
  return exact_json(line, "the cache of algorithms") + "\n";
}

}  // namespace

std::string to_hex(const std::string& bytes) {
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<uint8_t>(byte));
  return hex;
}

std::string from_hex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::strtol(hex.substr(i, 2).c_str(), nullptr, 16));
  }
  return bytes;
}

AlgorithmCache::AlgorithmCache(fs::path file) : file_(std::move(file)) {
  if (file_.empty()) return;
  Result<FileDescriptor> opened = try_run([&] { return open_to_read(file_); });
  if (opened.ok()) read_new(opened.value().get());
}

fs::path AlgorithmCache::default_file(const std::string& name) {
  if (const char* folder = std::getenv("SKEIN_CACHE"); folder != nullptr && *folder != '\0') {
    return fs::path(folder) / name;
  }
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return fs::path(home) / ".cache" / "skein" / name;
}

std::optional<AlgorithmCache::Choice> AlgorithmCache::find(const std::string& key) const {
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

// Opens the file and locks it until the descriptor is closed; -1 where that fails.
FileDescriptor AlgorithmCache::open_and_lock() const {
  if (file_.empty()) return {};
  std::error_code ignored;
  fs::create_directories(file_.parent_path(), ignored);
  Result<FileDescriptor> opened = try_run([&] { return open_lines(file_, /*create=*/true); });
  if (!opened.ok()) return {};
  FileDescriptor fd = std::move(opened).value();
  if (retry_interrupted([&] { return ::flock(fd.get(), LOCK_EX); }) != 0) return {};
  return fd;
}

// Reads only whole lines: the last one may still be being written, or its writer may have died.
void AlgorithmCache::read_new(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) return;
  if (status.st_size < num_read_) num_read_ = 0;  // another file by now
  std::string text(static_cast<size_t>(status.st_size - num_read_), '\0');
  const ssize_t got = ::pread(fd, text.data(), text.size(), num_read_);
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  size_t begin = 0;
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    add_line(text.substr(begin, end - begin));
    begin = end + 1;
  }
  num_read_ += static_cast<int64_t>(begin);
}

void AlgorithmCache::add_line(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("key") || !json.contains("algorithm") ||
      !json.contains("check") || !json.contains("microseconds")) {
    return;
  }
  if (!json["key"].is_string() || !json["algorithm"].is_string() ||
      !json["microseconds"].is_number()) {
    return;
  }
  const std::string key = json["key"], hex = json["algorithm"];
  if (json["check"] != check_of(key, hex)) return;
  choices_[key] = {from_hex(hex), json["microseconds"]};
}

std::optional<AlgorithmCache::Choice> AlgorithmCache::find_or_choose(
    const std::string& key, const std::function<std::optional<Choice>()>& choose) {
  const FileDescriptor fd = open_and_lock();
  if (fd.get() < 0) return std::nullopt;
  read_new(fd.get());
  if (const auto known = find(key)) return known;
  const std::optional<Choice> choice = choose();
  if (!choice) return std::nullopt;
  // A line that a writer left without its end must not swallow this one.
  const bool torn = ::lseek(fd.get(), 0, SEEK_END) > num_read_;
  const std::string line = (torn ? "\n" : "") + line_of(key, *choice);
  const ssize_t written = ::write(fd.get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) return std::nullopt;
  if (choices_.empty()) log::info("algorithms that were measured are kept in {}", file_.string());
  choices_[key] = *choice;
  return choice;
}

void warn_of_no_algorithm(const std::string& library, const std::string& problem) {
  log::warn("{} has no algorithm for {}: a slow kernel of our own runs", library, problem);
}

}  // namespace skein::cuda
