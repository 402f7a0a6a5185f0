#include "skein/runtime/pjrt/proto_reader.h"

#include "skein/base/error.h"

namespace skein {
namespace {

enum class Wire { kVarint = 0, kEightBytes = 1, kBytes = 2, kFourBytes = 5 };

}  // namespace

std::string_view ProtoReader::take(uint64_t count) {
  if (count > left_.size()) {
    fail(ErrorCode::kInvalid, "a protocol buffer ends early: {} bytes are left of {}", left_.size(),
         count);
  }
  const std::string_view taken = left_.substr(0, count);
  left_.remove_prefix(count);
  return taken;
}

uint64_t ProtoReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  fail(ErrorCode::kInvalid, "a protocol buffer has a number of more than 64 bits");
}

std::optional<ProtoField> ProtoReader::next() {
  if (left_.empty()) return std::nullopt;
  const uint64_t tag = varint();
  ProtoField field;
  field.number = static_cast<int>(tag >> 3);
  switch (static_cast<Wire>(tag & 7)) {
    case Wire::kVarint:
      field.integer = varint();
      return field;
    case Wire::kBytes:
      field.bytes = take(varint());
      field.is_bytes = true;
      return field;
    case Wire::kEightBytes:
      take(8);
      return field;
    case Wire::kFourBytes:
      take(4);
      return field;
  }
  fail(ErrorCode::kInvalid, "a protocol buffer has a field of unknown kind {}", tag & 7);
}

std::vector<int64_t> ProtoReader::integers(const ProtoField& field) {
  if (!field.is_bytes) return {static_cast<int64_t>(field.integer)};
  std::vector<int64_t> numbers;
  ProtoReader packed(field.bytes);
  while (!packed.left_.empty()) numbers.push_back(static_cast<int64_t>(packed.varint()));
  return numbers;
}

}  // namespace skein
