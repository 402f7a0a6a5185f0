#include "skein/runtime/pjrt/hlo_collectives.h"

#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "skein/base/files/protobuf.h"

namespace skein {
namespace {

std::string varint(uint64_t value) {
  std::string bytes;
  append_protobuf_varint(bytes, value);
  return bytes;
}
std::string field(int number, uint64_t value) {
  std::string bytes;
  append_protobuf_number(bytes, number, value);
  return bytes;
}
std::string field(int number, const std::string& text) {
  std::string bytes;
  append_protobuf_bytes(bytes, number, text);
  return bytes;
}

constexpr uint64_t kF32 = 11, kBF16 = 16, kTuple = 13;

std::string shape(uint64_t type, const std::vector<uint64_t>& dims) {
  std::string packed;
  for (const uint64_t dim : dims) packed += varint(dim);
  return field(2, type) + field(3, packed);
}
std::string tuple(const std::vector<std::string>& parts) {
  std::string text = field(2, kTuple);
  for (const std::string& part : parts) text += field(4, part);
  return text;
}
// Two groups of two.
std::string groups() {
  return field(49, field(1, varint(0) + varint(1))) + field(49, field(1, varint(2) + varint(3)));
}
std::string instruction(const std::string& opcode, const std::string& shape,
                        const std::string& more) {
  return field(2, field(1, "name") + field(2, opcode) + field(3, shape) + more);
}
std::string module(const std::string& instructions) {
  return field(1, "module") + field(3, field(1, "main") + instructions);
}

TEST(HloCollectives, AreFoundWithTheirBytesAndGroups) {
  const std::string iota = field(87, field(2, field(1, 2) + field(2, 8)));
  const auto found = hlo_collectives(
      module(instruction("add", shape(kF32, {4}), "") +
             instruction("all-gather", shape(kBF16, {2, 300}), groups()) +
             instruction("all-reduce", shape(kF32, {}), iota)) +
          field(3,
                instruction("all-to-all", tuple({shape(kF32, {4}), shape(kF32, {4})}), groups())),
      "hlo");
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(found[0].kind, "all-gather");
  EXPECT_EQ(found[0].ranks, 2);
  EXPECT_EQ(found[0].bytes, 1200);
  EXPECT_EQ(found[0].sent_bytes(), 600);
  EXPECT_EQ(found[1].kind, "all-reduce");
  EXPECT_EQ(found[1].ranks, 8);
  EXPECT_EQ(found[1].bytes, 4);
  EXPECT_EQ(found[2].kind, "all-to-all");
  EXPECT_EQ(found[2].bytes, 32);
  EXPECT_EQ(found[2].sent_bytes(), 16);
}

TEST(HloCollectives, OfAsynchronousOnesTheStartCounts) {
  const std::string both = tuple({shape(kF32, {4}), shape(kF32, {8})});
  const auto found =
      hlo_collectives(field(1, module(instruction("all-gather-start", both, groups()) +
                                      instruction("all-gather-done", shape(kF32, {8}), ""))) +
                          field(2, "configuration"),
                      "hlo_with_config");
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, "all-gather");
  EXPECT_EQ(found[0].bytes, 32);
}

TEST(HloCollectives, BytesThatAreNoMessageAreRefused) {
  const std::string whole = module(instruction("all-gather", shape(kF32, {8}), groups()));
  EXPECT_THROW(hlo_collectives(whole.substr(0, whole.size() - 3), "hlo"), Error);
  EXPECT_THROW(hlo_collectives(whole, "text"), Error);
  EXPECT_THROW(hlo_collectives(std::string(11, '\xff'), "hlo"), Error);
}

}  // namespace
}  // namespace skein
