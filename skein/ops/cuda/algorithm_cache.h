// Which of several algorithms is the fastest, measured once on a machine and kept in a file that
// all its processes share.
//
// File      one JSON object a line: key, algorithm (hexadecimal), microseconds, check. Lines are
//           only appended; one that is damaged or foreign is as if it were not there, and of two
//           with the same key the later one counts.
// Agreement processes that look for the same key wait for the one that measures, and find its
//           answer: ranks that hold the same values must compute them with the same algorithm.
// Errors    none: a file that cannot be read is empty, into one that cannot be written nothing is
//           chosen
// Threads   one at a time
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "skein/base/files/file.h"

namespace skein::cuda {

class AlgorithmCache {
 public:
  struct Choice {
    std::string algorithm;  // bytes, of what only its library knows
    double microseconds = 0;
  };

  // Reads it. An empty path: nothing is kept.
  explicit AlgorithmCache(fs::path file);

  std::optional<Choice> find(const std::string& key) const;

  // What is in the file by now; else what `choose` returns, which is then in the file. `choose`
  // runs while other processes wait: it must not wait for them. None: the file cannot be written,
  // or `choose` returned none.
  std::optional<Choice> find_or_choose(const std::string& key,
                                       const std::function<std::optional<Choice>()>& choose);

  // The file `name` in ${SKEIN_CACHE:-$HOME/.cache/skein}; empty where neither is set.
  static fs::path default_file(const std::string& name);

 private:
  FileDescriptor open_and_lock() const;
  void read_new(int fd);
  void add_line(const std::string& line);

  fs::path file_;
  int64_t num_read_ = 0;  // bytes of the file that `choices_` knows
  std::map<std::string, Choice> choices_;
};

// An algorithm's bytes as the file has them, in hexadecimal.
std::string to_hex(const std::string& bytes);
std::string from_hex(const std::string& hex);

// Logs that a library has no algorithm for a problem. (nvcc takes the log's own header with
// warnings.)
void warn_of_no_algorithm(const std::string& library, const std::string& problem);

}  // namespace skein::cuda
