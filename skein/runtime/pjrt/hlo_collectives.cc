#include "skein/runtime/pjrt/hlo_collectives.h"

#include <algorithm>
#include <array>

#include "skein/base/error.h"
#include "skein/base/files/protobuf.h"

namespace skein {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"all-gather",     "all-reduce",
                                                    "all-to-all",     "collective-permute",
                                                    "reduce-scatter", "collective-broadcast"};

// Of a PrimitiveType; 0 for what has no bytes, such as a token.
int64_t bytes_of_type(uint64_t type) {
  switch (type) {
    case 1:   // PRED
    case 2:   // S8
    case 6:   // U8
    case 19:  // F8E5M2
    case 20:  // F8E4M3FN
      return 1;
    case 3:   // S16
    case 7:   // U16
    case 10:  // F16
    case 16:  // BF16
      return 2;
    case 4:   // S32
    case 8:   // U32
    case 11:  // F32
      return 4;
    case 5:   // S64
    case 9:   // U64
    case 12:  // F64
      return 8;
    default:
      return 0;
  }
}

ProtobufReader reader_of(std::string_view message) { return {message, "a compiled program"}; }

struct HloShape {
  int64_t bytes = 0;            // of all that is in it
  std::vector<HloShape> parts;  // of a tuple
};

// ShapeProto: element_type 2, dimensions 3, tuple_shapes 4.
HloShape read_shape(std::string_view message) {
  HloShape shape;
  uint64_t type = 0;
  int64_t elements = 1;
  ProtobufReader reader = reader_of(message);
  while (reader.next()) {
    if (reader.field() == 2) type = reader.varint();
    if (reader.field() == 3) {
      for (const int64_t dim : reader.integers()) elements *= dim;
    }
    if (reader.field() == 4) shape.parts.push_back(read_shape(reader.bytes()));
  }
  shape.bytes = elements * bytes_of_type(type);
  for (const HloShape& part : shape.parts) shape.bytes += part.bytes;
  return shape;
}

// The ranks of the first of several ReplicaGroups: replica_ids 1. All groups have equal sizes.
int64_t read_group(std::string_view message) {
  int64_t ranks = 0;
  ProtobufReader reader = reader_of(message);
  while (reader.next()) {
    if (reader.field() == 1) ranks += std::ssize(reader.integers());
  }
  return ranks;
}

// CollectiveDeviceListProto: replica_groups 1; iota_replica_group_list 2, whose
// num_devices_per_group is 2.
int64_t read_device_list(std::string_view message) {
  ProtobufReader reader = reader_of(message);
  while (reader.next()) {
    if (reader.field() == 1) return read_group(reader.bytes());
    if (reader.field() != 2) continue;
    ProtobufReader iota = reader_of(reader.bytes());
    while (iota.next()) {
      if (iota.field() == 2) return static_cast<int64_t>(iota.varint());
    }
  }
  return 0;
}

// HloInstructionProto: opcode 2, shape 3, replica_groups 49, collective_device_list 87.
void read_instruction(std::string_view message, std::vector<CompiledCollective>& found) {
  std::string_view opcode;
  HloShape shape;
  int64_t ranks = 0;
  ProtobufReader reader = reader_of(message);
  while (reader.next()) {
    if (reader.field() == 2) opcode = reader.bytes();
    if (reader.field() == 3) shape = read_shape(reader.bytes());
    if (reader.field() == 49 && ranks == 0) ranks = read_group(reader.bytes());
    if (reader.field() == 87) ranks = read_device_list(reader.bytes());
  }
  constexpr std::string_view kStart = "-start";
  const bool starts = opcode.ends_with(kStart);
  if (starts) opcode.remove_suffix(kStart.size());
  if (std::find(kKinds.begin(), kKinds.end(), opcode) == kKinds.end()) return;
  // The start of an asynchronous one has its operands, its results and what it keeps.
  const bool has_operands = starts && shape.parts.size() >= 2;
  found.push_back({std::string(opcode), std::max<int64_t>(ranks, 1),
                   has_operands ? shape.parts[1].bytes : shape.bytes});
}

// HloModuleProto: computations 3. HloComputationProto: instructions 2.
std::vector<CompiledCollective> read_module(std::string_view module) {
  std::vector<CompiledCollective> found;
  ProtobufReader reader = reader_of(module);
  while (reader.next()) {
    if (reader.field() != 3) continue;
    ProtobufReader instructions = reader_of(reader.bytes());
    while (instructions.next()) {
      if (instructions.field() == 2) read_instruction(instructions.bytes(), found);
    }
  }
  return found;
}

}  // namespace

std::vector<CompiledCollective> hlo_collectives(std::string_view program, std::string_view format) {
  if (format == "hlo") return read_module(program);
  if (format != "hlo_with_config") {
    fail(ErrorCode::kInvalid, "a compiled program has the format '{}': expected hlo", format);
  }
  ProtobufReader reader = reader_of(program);  // HloModuleProtoWithConfig: hlo_module 1
  while (reader.next()) {
    if (reader.field() == 1) return read_module(reader.bytes());
  }
  return {};
}

}  // namespace skein
