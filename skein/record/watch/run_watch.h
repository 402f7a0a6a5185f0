// What Prometheus is told of a run: read from metrics.jsonl and events.jsonl as they grow, so that
// it outlives the workers, and is what `skein report` says.
//
// Reading  by a thread of its own, where text() asks for it: first the end of metrics.jsonl, for
//          the newest step, then all of it once, piece by piece, then what is added. Until all is
//          read, what needs it (times, goodput, spikes) is left out, and skein_catching_up is 1
// Cost     of a scrape: parsing the lines that were added since the last one, but no longer than
//          kPatience: it says what is known by then
// Threads  set_cluster may be called from any, and never waits: it takes no lock. Nor does the end
//          of a RunWatch wait for a reader: one that a file system holds ends when that answers.
//          text() may be called from any; nobody holds a lock while it reads a file
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "skein/config/config.h"

namespace skein {

struct Cluster {
  int64_t generation = 1;
  int64_t hosts = 1, hosts_wanted = 1;
};

class RunWatch {
 public:
  static constexpr std::chrono::milliseconds kPatience{2000};

  explicit RunWatch(const Config& config);
  ~RunWatch();
  RunWatch(const RunWatch&) = delete;
  RunWatch& operator=(const RunWatch&) = delete;

  void set_cluster(const Cluster& cluster);
  // The text for one scrape. What cannot be read is left out, and counted in
  // skein_watch_errors_total.
  std::string text() noexcept;
  // text(), for a thread that may outlive this object.
  std::function<std::string()> shared_text() const;

 private:
  class Reader;
  std::shared_ptr<Reader> reader_;
  mutable std::once_flag reads_;  // its thread begins with the first shared_text()
};

}  // namespace skein
