// etcd's v3 API, as its JSON gateway speaks it: what a rendezvous needs.
//
// Endpoints  of one cluster; where one does not answer, the next is asked. All of a call takes at
//            most kCallSeconds (key_value_store.h); before the first write, for each endpoint that
//            cuts the connection, the same again, to find out why
// Reads      are linearizable: they see every write that was answered before
// Users      a user has a token of each endpoint, in the header Authorization; it is asked for with
//            the password where there is none, or where etcd knows it no more
// Threads    any
// Errors     Error{kIo}: no endpoint answers, naming why for each; Error{kNotFound}: the lease is
//            over; Error{kInvalid}: it is no etcd of 3.4 or later, or refuses; Error{kUsage}: what
//            a user must mend (certificates, password, rights), before the first write that etcd
//            took; later, and where EtcdAccess::is_under_way, that is Error{kIo} as well
// Source     etcd.io/docs/v3.4/dev-guide/api_grpc_gateway, rpc.proto;
//            etcd.io/docs/v3.4/op-guide/authentication
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/base/threads/mutex.h"
#include "skein/store/etcd_access.h"
#include "skein/store/http_client.h"

namespace skein {

class EtcdClient {
 public:
  struct KeyValue {
    std::string key, value;
  };

  // Of http://host:port, or https://. `prefix`: of all keys, for errors.
  explicit EtcdClient(std::vector<std::string> endpoints, bool is_encrypted = false,
                      const EtcdAccess& access = {}, const std::string& prefix = "");

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

  // Asks for what a run needs, to read and write keys that begin with the prefix, and changes none.
  void check_rights();

 private:
  Json call(const std::string& path, const Json& body);
  HttpAnswer ask(size_t at, const std::string& path, const std::string& body, double seconds)
      SKEIN_REQUIRES(mutex_);
  std::optional<HttpAnswer> take_token(size_t at, double seconds) SKEIN_REQUIRES(mutex_);
  std::string mistake_of(const HttpAnswer& answer, const std::string& message) const;

  const std::vector<std::string> endpoints_;  // "host:port"
  const std::string scheme_, prefix_, user_, password_;
  const HttpCertificates certificates_;
  Mutex mutex_;
  HttpClient http_ SKEIN_GUARDED_BY(mutex_);
  size_t next_ SKEIN_GUARDED_BY(mutex_) = 0;  // the endpoint that answered last
  // By endpoint; nothing: to be asked for; "": etcd has no users.
  std::vector<std::optional<std::string>> tokens_ SKEIN_GUARDED_BY(mutex_);
  bool is_under_way_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace skein
