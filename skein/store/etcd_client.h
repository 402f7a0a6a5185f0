// etcd's v3 API, as its JSON gateway speaks it: what a rendezvous needs.
//
// Endpoints  of one cluster; where one does not answer, the next is asked. All of a call takes at
//            most kCallSeconds (key_value_store.h)
// Reads      are linearizable: they see every write that was answered before
// Threads    any
// Errors     Error{kIo}: no endpoint answers, naming why for each; Error{kNotFound}: the lease is
//            over; Error{kInvalid}: it is no etcd of 3.4 or later, or refuses
// Source     etcd.io/docs/v3.4/dev-guide/api_grpc_gateway, rpc.proto
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/base/json.h"
#include "skein/base/mutex.h"
#include "skein/store/http_client.h"

namespace skein {

class EtcdClient {
 public:
  struct KeyValue {
    std::string key, value;
  };

  explicit EtcdClient(std::vector<std::string> endpoints) : endpoints_(std::move(endpoints)) {}

  std::optional<std::string> get(const std::string& key);
  // All keys that begin with `prefix`, in order.
  std::vector<KeyValue> range(const std::string& prefix, bool keys_only);
  // `lease`: on which the key hangs; 0: none.
  void put(const std::string& key, const std::string& value, int64_t lease);
  // False where there is such a key, unless it has this very value: an answer that got lost.
  bool create(const std::string& key, const std::string& value, int64_t lease);
  void remove(const std::string& key);

  int64_t grant_lease(int64_t seconds);
  // False: the lease is over.
  bool keep_lease(int64_t lease);
  void revoke_lease(int64_t lease);

 private:
  Json call(const std::string& path, const Json& body);

  const std::vector<std::string> endpoints_;  // "host:port"
  Mutex mutex_;
  HttpClient http_ SKEIN_GUARDED_BY(mutex_);
  size_t next_ SKEIN_GUARDED_BY(mutex_) = 0;  // the endpoint that answered last
};

}  // namespace skein
