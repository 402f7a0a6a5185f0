#include "skein/launch/place/replica_address.h"

namespace skein {
namespace {

constexpr std::string_view kForm = "tls:";

}  // namespace

ReplicaKey replica_key(const JobSecret& secret) { return secret.sign({"replica key"}); }

std::string replicas_text(const std::string& address) {
  return address.empty() ? "" : std::string(kForm) + address;
}

ReplicaEndpoint replica_endpoint(const HostRecord& record) {
  if (!record.replicas.starts_with(kForm)) return {};
  const std::string address = record.replicas.substr(kForm.size());
  return socket_address(address) ? ReplicaEndpoint{address, record.host} : ReplicaEndpoint{};
}

bool keeps_plain_replicas(const HostRecord& record) {
  return socket_address(record.replicas.substr(0, record.replicas.find(' '))).has_value();
}

}  // namespace skein
