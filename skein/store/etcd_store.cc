#include <algorithm>
#include <charconv>
#include <chrono>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/threads/mutex.h"
#include "skein/store/etcd_client.h"
#include "skein/store/key_value_store.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kKeepLease = std::chrono::hours(1);
constexpr std::string_view kSchemes[] = {"etcd://", "etcds://"};
// Holds the number of the place's lease, and itself hangs on none: the name of a start is never
// used twice, so that nobody who slept through its end takes the next one for it.
constexpr std::string_view kLease = "/lease";

class EtcdStore : public KeyValueStore {
 public:
  EtcdStore(std::shared_ptr<EtcdClient> client, const std::string& text, const std::string& place)
      : client_(std::move(client)),
        text_(text),
        prefix_(place + "/records/"),
        lease_key_(place + std::string(kLease)),
        lease_(find_lease()) {
    if (client_->keep_lease(lease_)) return;
    fail(ErrorCode::kNotFound,
         "{} is over: nobody has used it for {} days, and what it held is gone", text_,
         kLeaseSeconds / 86400);
  }

  const std::string& text() const override { return text_; }

  std::optional<std::string> read(const std::string& name) override {
    return client_->get(prefix_ + name);
  }

  std::vector<std::string> names(const std::string& prefix) override {
    std::vector<std::string> names;
    for (const auto& found : client_->range(prefix_ + prefix, /*keys_only=*/true)) {
      names.push_back(found.key.substr(prefix_.size()));
    }
    return names;
  }

  void visit(const std::string& prefix, const std::set<std::string>& known,
             const Visit& visit) override {
    for (auto& found : client_->range(prefix_ + prefix, /*keys_only=*/false)) {
      const std::string name = found.key.substr(prefix_.size());
      if (!known.contains(name)) visit(name, std::move(found.value));
    }
  }

  void write(const std::string& name, const std::string& value) override {
    keep_lease();
    client_->put(prefix_ + name, value, lease_);
  }

  bool create(const std::string& name, const std::string& value) override {
    return client_->create(prefix_ + name, value, lease_);
  }

  void remove(const std::string& name) override { client_->remove(prefix_ + name); }

  void remove_all() override {
    client_->revoke_lease(lease_);  // and with it every record
    client_->remove(lease_key_);
  }

 private:
  // Of those who begin a place at once, one wins.
  int64_t find_lease() {
    if (const auto found = client_->get(lease_key_)) return lease_of(*found);
    const int64_t lease = client_->grant_lease(kLeaseSeconds);
    if (client_->create(lease_key_, std::to_string(lease), 0)) return lease;
    client_->revoke_lease(lease);
    const auto found = client_->get(lease_key_);
    if (!found) fail(ErrorCode::kIo, "{} was removed while it was opened", text_);
    return lease_of(*found);
  }

  int64_t lease_of(const std::string& value) const {
    int64_t lease = 0;
    const auto [stop, wrong] = std::from_chars(value.data(), value.data() + value.size(), lease);
    if (wrong != std::errc() || stop != value.data() + value.size() || lease <= 0) {
      fail(ErrorCode::kInvalid,
           "the key {} in etcd is \"{}\", expected the number of a lease: choose another prefix "
           "for launch.rendezvous, or remove what is there",
           lease_key_, value.substr(0, 100));
    }
    return lease;
  }

  void keep_lease() {
    {
      const Lock lock(mutex_);
      if (Clock::now() - kept_ < kKeepLease) return;
    }
    client_->keep_lease(lease_);
    const Lock lock(mutex_);
    kept_ = Clock::now();
  }

  const std::shared_ptr<EtcdClient> client_;
  const std::string text_, prefix_, lease_key_;
  const int64_t lease_;
  Mutex mutex_;
  Clock::time_point kept_ SKEIN_GUARDED_BY(mutex_) = Clock::now();
};

class EtcdRoot : public StoreRoot {
 public:
  EtcdRoot(const std::string& text, const std::string& prefix, std::shared_ptr<EtcdClient> client)
      : text_(text), prefix_(prefix + "/"), client_(std::move(client)) {}

  const std::string& text() const override { return text_; }

  std::vector<std::string> places() override {
    std::vector<std::string> places;
    for (const auto& found : client_->range(prefix_, /*keys_only=*/true)) {
      const std::string rest = found.key.substr(prefix_.size());
      std::string first = rest.substr(0, rest.find('/'));
      if (places.empty() || places.back() != first) places.push_back(std::move(first));
    }
    return places;
  }

  void check() override { client_->check_rights(); }

  std::unique_ptr<KeyValueStore> open(const std::string& place) override {
    return std::make_unique<EtcdStore>(client_, text_ + "/" + place, prefix_ + place);
  }

 private:
  const std::string text_, prefix_;
  const std::shared_ptr<EtcdClient> client_;
};

// A port at the end, and before it a name, an IPv4 address, or an IPv6 one in brackets.
bool is_endpoint(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return false;
  const std::string host = text.substr(0, colon), digits = text.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  const std::string_view allowed =
      bracketed ? "0123456789abcdefABCDEF:.[]"
                : "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  int port = 0;
  const auto [stop, wrong] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return host.find_first_not_of(allowed) == host.npos && wrong == std::errc() &&
         stop == digits.data() + digits.size() && port >= 1 && port <= 65535;
}

bool is_prefix(const std::string& text) {
  constexpr std::string_view kAllowed =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._/";
  return !text.empty() && text.front() != '/' && text.back() != '/' && text.size() <= 200 &&
         text.find_first_not_of(kAllowed) == text.npos;
}

}  // namespace

bool is_encrypted_address(const std::string& rendezvous) {
  return rendezvous.starts_with(kSchemes[1]);
}

bool is_etcd_address(const std::string& rendezvous) {
  return rendezvous.starts_with(kSchemes[0]) || is_encrypted_address(rendezvous);
}

std::unique_ptr<StoreRoot> etcd_root(const std::string& address, const EtcdAccess& access) {
  const bool is_encrypted = is_encrypted_address(address);
  if (address.find('@') != address.npos) {  // may have a password before it
    fail(ErrorCode::kUsage,
         "launch.rendezvous holds an @, as if a user and a password stood before it: name the user "
         "in launch.etcd_user, and a file with the password in launch.etcd_password_file");
  }
  std::string rest = address.substr(kSchemes[is_encrypted ? 1 : 0].size());
  const size_t slash = rest.find('/');
  const std::string prefix = slash == rest.npos ? "" : rest.substr(slash + 1);
  rest = rest.substr(0, slash);
  std::vector<std::string> endpoints;
  for (size_t begin = 0; begin <= rest.size();) {
    const size_t end = std::min(rest.find(',', begin), rest.size());
    endpoints.push_back(rest.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!std::all_of(endpoints.begin(), endpoints.end(), is_endpoint) || !is_prefix(prefix)) {
    fail(ErrorCode::kUsage,
         "launch.rendezvous is \"{}\": expected etcd://host:port[,host:port...]/prefix, or "
         "etcds:// with TLS, such as etcd://host0:2379/demo, where the prefix is this run's own",
         address.substr(0, 300));
  }
  return std::make_unique<EtcdRoot>(
      address, prefix,
      std::make_shared<EtcdClient>(std::move(endpoints), is_encrypted, access, prefix));
}

}  // namespace skein
