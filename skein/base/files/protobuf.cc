#include "skein/base/files/protobuf.h"

#include <bit>
#include <cstring>

#include "skein/base/error.h"

namespace skein {
namespace {

void append_tag(std::string& to, int field, ProtobufWire wire) {
  append_protobuf_varint(to, static_cast<uint64_t>(field) << 3 | static_cast<uint64_t>(wire));
}

}  // namespace

bool ProtobufReader::next() {
  if (rest_.empty()) return false;
  const std::string_view begin = rest_;
  const uint64_t tag = read_varint();
  field_ = tag >> 3;
  wire_ = static_cast<ProtobufWire>(tag & 7);
  if (field_ == 0 || field_ >= (1u << 29)) {
    fail(ErrorCode::kCorrupt, "{}: has a field of number {}", where_, field_);
  }
  switch (wire_) {
    case ProtobufWire::kVarint:
      varint_ = read_varint();
      break;
    case ProtobufWire::kFixed64:
      bytes_ = take(8);
      break;
    case ProtobufWire::kFixed32:
      bytes_ = take(4);
      break;
    case ProtobufWire::kBytes:
      bytes_ = take(read_varint());
      break;
    default:
      fail(ErrorCode::kCorrupt, "{}: has a field of unknown wire type {}", where_, tag & 7);
  }
  whole_ = begin.substr(0, begin.size() - rest_.size());
  return true;
}

uint64_t ProtobufReader::varint() const {
  expect(ProtobufWire::kVarint);
  return varint_;
}

std::string_view ProtobufReader::bytes() const {
  expect(ProtobufWire::kBytes);
  return bytes_;
}

float ProtobufReader::number() const {
  expect(ProtobufWire::kFixed32);
  uint32_t bits;
  std::memcpy(&bits, bytes_.data(), 4);
  return std::bit_cast<float>(bits);
}

std::vector<int64_t> ProtobufReader::integers() const {
  if (wire_ == ProtobufWire::kVarint) return {static_cast<int64_t>(varint_)};
  std::vector<int64_t> numbers;
  ProtobufReader packed(bytes(), where_);
  while (!packed.rest_.empty()) numbers.push_back(static_cast<int64_t>(packed.read_varint()));
  return numbers;
}

void ProtobufReader::expect(ProtobufWire wire) const {
  if (wire_ == wire) return;
  fail(ErrorCode::kCorrupt, "{}: field {} has wire type {}: expected {}", where_, field_,
       static_cast<int>(wire_), static_cast<int>(wire));
}

std::string_view ProtobufReader::take(uint64_t size) {
  if (size > rest_.size()) {
    fail(ErrorCode::kCorrupt, "{}: a field of {} bytes where {} are left (truncated?)", where_,
         size, rest_.size());
  }
  const std::string_view taken = rest_.substr(0, size);
  rest_.remove_prefix(size);
  return taken;
}

uint64_t ProtobufReader::read_varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto byte = static_cast<uint8_t>(take(1)[0]);
    if (shift < 64) value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  fail(ErrorCode::kCorrupt, "{}: has a number of more than 10 bytes", where_);
}

void append_protobuf_varint(std::string& to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) to.push_back(static_cast<char>(value | 0x80));
  to.push_back(static_cast<char>(value));
}

void append_protobuf_number(std::string& to, int field, uint64_t value) {
  append_tag(to, field, ProtobufWire::kVarint);
  append_protobuf_varint(to, value);
}

void append_protobuf_bytes(std::string& to, int field, std::string_view bytes) {
  append_tag(to, field, ProtobufWire::kBytes);
  append_protobuf_varint(to, bytes.size());
  to += bytes;
}

}  // namespace skein
