#include "skein/base/files/protobuf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_of.h"

namespace skein {
namespace {

using test::error_of;
using testing::HasSubstr;

TEST(Protobuf, ReadsWhatItWrites) {
  std::string message;
  append_protobuf_number(message, 1, 0);
  append_protobuf_number(message, 16, ~uint64_t{0});
  append_protobuf_bytes(message, 2, "text");
  message += std::string("\x1d\x00\x00\x80\x3f", 5);  // field 3, 1.0f
  ProtobufReader reader(message, "test");
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 1u);
  EXPECT_EQ(reader.varint(), 0u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.field(), 16u);
  EXPECT_EQ(reader.varint(), ~uint64_t{0});
  EXPECT_EQ(reader.whole().size(), 12u);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.bytes(), "text");
  EXPECT_EQ(reader.whole(), "\x12\x04text");
  EXPECT_THAT(error_of([&] { (void)reader.varint(); }),
              HasSubstr("test: field 2 has wire type 2: expected 0"));
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), 1.0f);
  EXPECT_FALSE(reader.next());
}

TEST(Protobuf, ReadsRepeatedNumbersPackedOrOneByOne) {
  std::string message;
  append_protobuf_number(message, 3, 300);
  append_protobuf_bytes(message, 3, "\xac\x02\x05");
  ProtobufReader reader(message, "test");
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(reader.integers(), testing::ElementsAre(300));
  ASSERT_TRUE(reader.next());
  EXPECT_THAT(reader.integers(), testing::ElementsAre(300, 5));
}

TEST(Protobuf, RefusesWhatIsDamaged) {
  const auto error = [](const std::string& bytes) {
    return error_of([&] {
      for (ProtobufReader reader(bytes, "a file"); reader.next();) {
      }
    });
  };
  EXPECT_THAT(error("\x12\x04te"), HasSubstr("a file: a field of 4 bytes where 2 are left"));
  EXPECT_THAT(error(std::string("\x00\x01", 2)), HasSubstr("a field of number 0"));
  EXPECT_THAT(error("\x0b"), HasSubstr("unknown wire type 3"));
  EXPECT_THAT(error("\x08" + std::string(11, '\xff')), HasSubstr("more than 10 bytes"));
}

}  // namespace
}  // namespace skein
