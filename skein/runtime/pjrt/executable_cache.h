// Compiled programs on a disk of this machine, for the next start; behind them those that machines
// fill for each other.
//
// Format   docs/compile_cache_format.md
// Trust    the files are machine code that this process will run: who may write to the folder, or
//          to what is shared, may run programs as this user
// Size     what was not used for longest is removed once there is more than `max_bytes`
// Errors   none: a file that cannot be used is a line of the log, and the program is compiled; one
//          that cannot be written as well, and the run goes on without
// Threads  several may call all functions at once; so may several processes
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "skein/runtime/compiler_settings.h"

namespace skein {

class ExecutableCache {
 public:
  // `folder`: it need not be there yet.
  ExecutableCache(fs::path folder, int64_t max_bytes, SharedFiles shared);

  // The executable of that key; nothing: there is none that can be used. `name`: of the program,
  // for messages.
  std::optional<std::string> find(const std::string& key, const std::string& name);
  void add(const std::string& key, const std::string& name, std::string_view executable);
  // What find() returned is of no use: says so and why, and removes it from this machine.
  void refuse(const std::string& key, const std::string& name, std::string_view why);

  std::string place() const;  // "/scratch/compiled and s3://bucket/compiled"

 private:
  std::optional<std::string> find_shared(const std::string& key, const std::string& name);
  void write(const std::string& key, const std::string& file);
  void make_room(int64_t num_bytes);
  fs::path path_of(const std::string& key) const;

  const fs::path folder_;
  const int64_t max_bytes_;
  const SharedFiles shared_;
  std::atomic<bool> writes_ = true, shares_ = true;  // neither is tried again once it failed
};

// The text of a cache file, and what one holds; throws Error{kCorrupt} that says what is wrong with
// it. `key`: 32 hexadecimal digits.
std::string cache_file_text(const std::string& key, std::string_view executable);
std::string executable_of_cache_file(const std::string& key, std::string_view file);

}  // namespace skein
