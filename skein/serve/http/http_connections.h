// The connections of an HTTP server that are open.
//
// Threads  from any
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "skein/base/threads/mutex.h"

namespace skein {

class HttpConnection;

class HttpConnections {
 public:
  enum class Admission { kServe, kRefuse, kDrop };

  // kServe up to `most`; then kRefuse for so many more; kDrop for others, and when stopping.
  Admission add(const std::shared_ptr<HttpConnection>& connection, int most);
  void remove(const HttpConnection& connection);
  int64_t num_served() const;

  std::vector<std::shared_ptr<HttpConnection>> stop_adding();
  std::vector<std::shared_ptr<HttpConnection>> all() const;
  // Whether all are closed within that time.
  bool wait_until_none(std::chrono::milliseconds timeout);

 private:
  static constexpr size_t kMostRefused = 128;

  struct Entry {
    std::shared_ptr<HttpConnection> connection;  // alive until it is closed
    bool is_served;
  };
  mutable Mutex mutex_;
  std::unordered_map<const HttpConnection*, Entry> entries_ SKEIN_GUARDED_BY(mutex_);
  int64_t num_served_ SKEIN_GUARDED_BY(mutex_) = 0;
  bool is_stopping_ SKEIN_GUARDED_BY(mutex_) = false;
  ConditionVariable changed_;
};

}  // namespace skein
