// Messages of Protocol Buffers, field by field, for the few that are read and written without their
// schema.
//
// Errors  Error{kCorrupt}: the bytes are not a message, or a field has another wire type
// Source  protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace skein {

enum class ProtobufWire { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// Steps through the fields of a message.
class ProtobufReader {
 public:
  // `bytes` outlive it. `where` begins every error, such as "tok.model: not a SentencePiece model".
  ProtobufReader(std::string_view bytes, std::string where)
      : rest_(bytes), where_(std::move(where)) {}

  // Steps to the next field; false at the end.
  bool next();

  uint64_t field() const { return field_; }
  ProtobufWire wire() const { return wire_; }
  uint64_t varint() const;
  std::string_view bytes() const;
  float number() const;
  // Of a field of repeated numbers: one, or several that are packed.
  std::vector<int64_t> integers() const;
  // The field as it stands in the message, with its tag.
  std::string_view whole() const { return whole_; }

 private:
  void expect(ProtobufWire wire) const;
  std::string_view take(uint64_t size);
  uint64_t read_varint();

  std::string_view rest_;
  std::string where_;
  uint64_t field_ = 0;
  ProtobufWire wire_ = ProtobufWire::kVarint;
  uint64_t varint_ = 0;
  std::string_view bytes_, whole_;
};

void append_protobuf_varint(std::string& to, uint64_t value);
void append_protobuf_number(std::string& to, int field, uint64_t value);
void append_protobuf_bytes(std::string& to, int field, std::string_view bytes);

}  // namespace skein
