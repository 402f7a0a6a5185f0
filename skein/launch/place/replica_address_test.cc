#include "skein/launch/place/replica_address.h"

#include <gtest/gtest.h>

namespace skein {
namespace {

const JobSecret kSecret("0123456789abcdef", "test");

HostRecord record(const std::string& host, const std::string& replicas) {
  HostRecord record;
  record.host = host;
  record.replicas = replicas;
  return record;
}

TEST(ReplicaAddress, IsOfTheMachineThatWroteIt) {
  const auto endpoint = replica_endpoint(record("a.1", replicas_text("10.0.0.7:41234")));
  EXPECT_EQ(endpoint.address, "10.0.0.7:41234");
  EXPECT_EQ(endpoint.host, "a.1");
  EXPECT_EQ(ReplicaEndpoint::parse(endpoint.text()), endpoint);
  EXPECT_EQ(replicas_text(""), "");
}

TEST(ReplicaAddress, TheKeyFollowsFromTheSecret) {
  std::string digits;
  for (const char byte : replica_key(kSecret)) {
    digits += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  // printf '\13\0\0\0\0\0\0\0replica key' | openssl dgst -sha256 -hmac 0123456789abcdef
  EXPECT_EQ(digits, "7714fc07ae09efa3bb52e632897c7226b172bb8ab7224c41663659214c047577");
  EXPECT_NE(replica_key(JobSecret("another secret!!", "test")), replica_key(kSecret));
}

// Nothing is asked of it, since it would answer without encryption.
TEST(ReplicaAddress, ARecordOfAnEarlierVersionIsKnownAndHasNone) {
  for (const char* old : {"10.0.0.7:41234", "10.0.0.7:41234 00000000000000000000000000000000"}) {
    EXPECT_EQ(replica_endpoint(record("a.1", old)), ReplicaEndpoint{}) << old;
    EXPECT_TRUE(keeps_plain_replicas(record("a.1", old))) << old;
  }
  EXPECT_FALSE(keeps_plain_replicas(record("a.1", replicas_text("10.0.0.7:41234"))));
}

TEST(ReplicaAddress, ARecordWithoutAnAddressHasNone) {
  for (const char* text : {"", " ", "tls:", "tls:10.0.0.7", "tls:10.0.0.7:0", "tls:node7:41234",
                           "tls:10.0.0.7:41234x", "TLS:10.0.0.7:41234"}) {
    EXPECT_EQ(replica_endpoint(record("a.1", text)), ReplicaEndpoint{}) << text;
    EXPECT_FALSE(keeps_plain_replicas(record("a.1", text))) << text;
  }
}

}  // namespace
}  // namespace skein
