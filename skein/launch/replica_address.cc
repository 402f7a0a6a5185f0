#include "skein/launch/replica_address.h"

namespace skein {

std::string replica_token(const JobSecret& secret, const std::string& host) {
  constexpr size_t kBytes = 16;
  const JobSecret::Signature signature = secret.sign({"replicas", host});
  std::string token;
  for (const char byte : std::string_view(signature.data(), kBytes)) {
    token += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return token;
}

// Earlier versions wrote a token of their own behind the address.
ReplicaEndpoint replica_endpoint(const HostRecord& record, const JobSecret& secret) {
  const std::string address = record.replicas.substr(0, record.replicas.find(' '));
  if (!socket_address(address)) return {};
  return {address, replica_token(secret, record.host)};
}

}  // namespace skein
