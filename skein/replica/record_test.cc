#include "skein/replica/record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/numbers/hash.h"
#include "tests/checkpoint/checkpoint_ranks_state.h"

namespace skein {
namespace {

using testing::HasSubstr;

constexpr size_t kChecksumDigits = 32;

struct Part {
  Part() {
    const test::RanksState state(Mesh::standard(1, 1, 1, 2));
    const auto layout = plan_checkpoint(state.specs(1), int64_t{1} << 30, 1);
    data.assign(layout.snapshot_bytes, std::byte{3});
    record = ReplicaRecord::make(layout, data, state.state(41, 1));
  }

  std::vector<std::byte> data;
  std::string record;
};

std::string with_checksum(const std::string& rest) {
  return xxh3_128_hex(std::as_bytes(std::span(rest))) + rest;
}

// All that whoever goes on from a part does with its record.
Result<bool> use(const std::string& record, std::span<const std::byte> data) {
  return try_run([&] {
    ReplicaRecord part(record, "a part");
    part.verify(data);
    part.take_part();
    return true;
  });
}

TEST(ReplicaRecord, KnowsItsData) {
  Part part;
  EXPECT_TRUE(use(part.record, part.data).ok());
  part.data[100] = std::byte{4};
  const auto damaged = use(part.record, part.data);
  ASSERT_FALSE(damaged.ok());
  EXPECT_EQ(damaged.error().code(), ErrorCode::kCorrupt);
  EXPECT_THAT(damaged.error().what(), HasSubstr("does not match its checksum"));
  EXPECT_FALSE(use(part.record, std::span(part.data).first(part.data.size() - 1)).ok());
  EXPECT_FALSE(use(part.record, {}).ok());
}

TEST(ReplicaRecord, AnyOtherByteIsNoticed) {
  const Part part;
  for (size_t i = 0; i < part.record.size(); i += 7) {
    std::string other = part.record;
    other[i] = static_cast<char>(other[i] ^ 1);
    EXPECT_FALSE(use(other, part.data).ok()) << i;
    EXPECT_FALSE(use(part.record.substr(0, i), part.data).ok()) << i;
  }
}

// Who can write a record can also write its checksum: what follows is an Error, or a record.
TEST(ReplicaRecord, WhatAStrangerWouldWriteIsAnError) {
  const Part part;
  const std::string rest = part.record.substr(kChecksumDigits);
  for (size_t i = 0; i < rest.size(); i += 7) {
    for (const char byte : {'\0', '9', '-', '"', '[', '\xff'}) {
      std::string other = rest;
      other[i] = byte;
      (void)use(with_checksum(other), part.data);
    }
    EXPECT_FALSE(use(with_checksum(rest.substr(0, i)), part.data).ok()) << i;
  }
  const std::string runs = R"({"configuration":{},"files":{"a":[)";
  for (const std::string& head :
       {std::string(), std::string("null"), std::string("{"), std::string("[[]]"),
        std::string(R"({"files":{}})"), std::string(R"({"configuration":{},"files":7})"),
        runs + "[0,1]]}}", runs + "[0,-1,0]]}}", runs + "[0,1e300,0]]}}",
        runs + "[0,18446744073709551615,0]]}}", runs + R"(["0",1,0]]}})"}) {
    const auto found = use(with_checksum(fmt::format("{}\n{}", head.size(), head)), part.data);
    ASSERT_FALSE(found.ok()) << head;
    EXPECT_THAT(found.error().what(), HasSubstr("a part")) << head;
  }
  for (const char* size : {"", "\n", "-1\n", "1x\n", "99999999999999999999\n", "100\n{}"}) {
    const auto found = use(with_checksum(size), part.data);
    ASSERT_FALSE(found.ok()) << size;
    EXPECT_THAT(found.error().what(), HasSubstr("its record is not a rank's")) << size;
  }
}

}  // namespace
}  // namespace skein
