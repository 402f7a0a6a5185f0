#include "skein/stablehlo/hlo_proto.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "skein/base/error.h"
#include "skein/base/files/protobuf.h"
#include "tests/error_of.h"

namespace skein::stablehlo {
namespace {

using testing::HasSubstr;

constexpr uint64_t kComputation = uint64_t{2} << 32;  // as newer XLA numbers instructions

std::string instruction(uint64_t id, const std::vector<uint64_t>& operands,
                        const std::string& more = "") {
  std::string bytes, packed;
  append_protobuf_bytes(bytes, 1, "name");
  append_protobuf_number(bytes, 35, id);
  for (const uint64_t operand : operands) append_protobuf_varint(packed, operand);
  if (!operands.empty()) append_protobuf_bytes(bytes, 36, packed);
  return bytes + more;
}

std::string module_of(const std::vector<std::string>& instructions, uint64_t root,
                      uint64_t entry = 7) {
  std::string computation, shape, module, proto;
  for (const std::string& one : instructions) append_protobuf_bytes(computation, 2, one);
  append_protobuf_number(computation, 5, 7);
  append_protobuf_number(computation, 6, root);
  append_protobuf_bytes(shape, 1, "");
  append_protobuf_bytes(shape, 2, "");
  append_protobuf_bytes(module, 1, "m");
  append_protobuf_bytes(module, 3, computation);
  append_protobuf_bytes(module, 4, shape);
  append_protobuf_number(module, 6, entry);
  append_protobuf_bytes(proto, 1, module);
  return proto;
}

std::vector<std::string_view> fields(std::string_view message, uint64_t number) {
  std::vector<std::string_view> found;
  for (ProtobufReader reader(message, "test"); reader.next();) {
    if (reader.field() == number) found.push_back(reader.whole());
  }
  return found;
}

std::string number_field(int field, uint64_t value) {
  std::string bytes;
  append_protobuf_number(bytes, field, value);
  return bytes;
}

std::string inside(std::string_view message, uint64_t field, size_t index) {
  size_t at = 0;
  for (ProtobufReader reader(message, "test"); reader.next();) {
    if (reader.field() == field && at++ == index) return std::string(reader.bytes());
  }
  return "";
}

TEST(HloProto, IdsBecomeSmall) {
  const HloModule module = portable_hlo(module_of(
      {instruction(kComputation + 1, {}), instruction(kComputation + 9, {kComputation + 1})},
      kComputation + 9));
  EXPECT_EQ(module.name, "m");
  EXPECT_EQ(module.num_instructions, 2);
  EXPECT_EQ(module.num_parameters, 1);
  EXPECT_EQ(module.num_results, 1);
  const std::string computation = inside(module.bytes, 3, 0);
  EXPECT_EQ(fields(computation, 6)[0], number_field(6, 2));
  EXPECT_EQ(fields(inside(computation, 2, 0), 35)[0], number_field(35, 1));
  const std::string second = inside(computation, 2, 1);
  EXPECT_EQ(fields(second, 35)[0], number_field(35, 2));
  EXPECT_EQ(inside(second, 36, 0), "\x01");
  EXPECT_EQ(inside(second, 1, 0), "name");
}

TEST(HloProto, GroupsAreWrittenInBothFields) {
  std::string list, more;
  append_protobuf_bytes(list, 1, std::string("\x0a\x02\x00\x01", 4));
  append_protobuf_bytes(list, 1, "\x0a\x02\x02\x03");
  append_protobuf_bytes(more, 87, list);
  const HloModule module = portable_hlo(module_of({instruction(1, {}, more)}, 1));
  const std::string one = inside(inside(module.bytes, 3, 0), 2, 0);
  ASSERT_EQ(fields(one, 49).size(), 2u);
  EXPECT_EQ(inside(one, 49, 1), "\x0a\x02\x02\x03");
  EXPECT_EQ(inside(one, 87, 0), list);
}

TEST(HloProto, RefusesWhatIsNoModule) {
  const auto error = [](const std::string& proto) {
    return test::error_of([&] { portable_hlo(proto); });
  };
  EXPECT_THAT(error(""), HasSubstr("holds no module"));
  EXPECT_THAT(error(module_of({instruction(1, {2})}, 1)), HasSubstr("refers to instruction 2"));
  EXPECT_THAT(error(module_of({instruction(1, {}), instruction(1, {})}, 1)), HasSubstr("twice"));
  EXPECT_THAT(error(module_of({instruction(1, {})}, 1, /*entry=*/8)),
              HasSubstr("its entry is computation 8"));
  std::string list, more;
  append_protobuf_number(list, 2, 1);
  append_protobuf_bytes(more, 87, list);
  EXPECT_THAT(error(module_of({instruction(1, {}, more)}, 1)), HasSubstr("by a formula"));
  const std::string good = module_of({instruction(1, {})}, 1);
  for (size_t size = 1; size < good.size(); ++size) {
    EXPECT_THROW(portable_hlo(good.substr(0, size)), Error) << size;
  }
}

}  // namespace
}  // namespace skein::stablehlo
