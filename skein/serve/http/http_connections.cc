#include "skein/serve/http/http_connections.h"

#include <utility>

namespace skein {

HttpConnections::Admission HttpConnections::add(const std::shared_ptr<HttpConnection>& connection,
                                                int most) {
  Lock lock(mutex_);
  if (is_stopping_) return Admission::kDrop;
  const bool is_served = num_served_ < most;
  if (!is_served && entries_.size() >= static_cast<size_t>(num_served_) + kMostRefused) {
    return Admission::kDrop;
  }
  entries_[connection.get()] = {connection, is_served};
  num_served_ += is_served;
  return is_served ? Admission::kServe : Admission::kRefuse;
}

void HttpConnections::remove(const HttpConnection& connection) {
  std::shared_ptr<HttpConnection> last;  // destroyed without the lock
  Lock lock(mutex_);
  const auto entry = entries_.find(&connection);
  if (entry == entries_.end()) return;
  num_served_ -= entry->second.is_served;
  last = std::move(entry->second.connection);
  entries_.erase(entry);
  if (entries_.empty()) changed_.notify_all();
}

int64_t HttpConnections::num_served() const {
  Lock lock(mutex_);
  return num_served_;
}

std::vector<std::shared_ptr<HttpConnection>> HttpConnections::stop_adding() {
  {
    Lock lock(mutex_);
    is_stopping_ = true;
  }
  return all();
}

std::vector<std::shared_ptr<HttpConnection>> HttpConnections::all() const {
  std::vector<std::shared_ptr<HttpConnection>> connections;
  Lock lock(mutex_);
  for (const auto& [address, entry] : entries_) connections.push_back(entry.connection);
  return connections;
}

bool HttpConnections::wait_until_none(std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  return changed_.wait_for(lock, timeout,
                           [this]() SKEIN_REQUIRES(mutex_) { return entries_.empty(); });
}

}  // namespace skein
