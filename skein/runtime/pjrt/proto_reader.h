// Reads protocol buffers field by field, as far as a reader needs them.
//
// Errors  Error{kInvalid} where bytes are no message
// Source  protobuf.dev/programming-guides/encoding
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace skein {

struct ProtoField {
  int number = 0;
  uint64_t integer = 0;    // of a varint; 0 otherwise
  std::string_view bytes;  // of a string, a message or packed numbers
  bool is_bytes = false;
};

class ProtoReader {
 public:
  explicit ProtoReader(std::string_view message) : left_(message) {}
  std::optional<ProtoField> next();
  // Of a field of repeated numbers: one, or several that are packed.
  static std::vector<int64_t> integers(const ProtoField& field);

 private:
  uint64_t varint();
  std::string_view take(uint64_t count);

  std::string_view left_;
};

}  // namespace skein
