#include "skein/launch/replica_address.h"

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

TEST(ReplicaAddress, TheTokenFollowsFromTheSecretAndTheHost) {
  const auto endpoint = replica_endpoint(record("a.1", "10.0.0.7:41234"), kSecret);
  EXPECT_EQ(endpoint.address, "10.0.0.7:41234");
  // printf '\10\0\0\0\0\0\0\0replicas\3\0\0\0\0\0\0\0a.1' |
  //   openssl dgst -sha256 -hmac 0123456789abcdef
  EXPECT_EQ(endpoint.token, "15c379e7c280ee1c842c208ab499e347");
  EXPECT_EQ(ReplicaEndpoint::parse(endpoint.text()), endpoint);
  EXPECT_NE(replica_token(kSecret, "b.1"), endpoint.token);
  EXPECT_NE(replica_token(JobSecret("another secret!!", "test"), "a.1"), endpoint.token);
}

TEST(ReplicaAddress, ARecordOfAnEarlierVersionHasATokenWhichIsPassedOver) {
  const std::string old = "10.0.0.7:41234 00000000000000000000000000000000";
  EXPECT_EQ(replica_endpoint(record("a.1", old), kSecret),
            replica_endpoint(record("a.1", "10.0.0.7:41234"), kSecret));
}

TEST(ReplicaAddress, ARecordWithoutAnAddressHasNone) {
  for (const char* text : {"", " ", "10.0.0.7", "10.0.0.7:0", "node7:41234", "10.0.0.7:41234x"}) {
    EXPECT_EQ(replica_endpoint(record("a.1", text), kSecret), ReplicaEndpoint{}) << text;
  }
}

}  // namespace
}  // namespace skein
