#include "skein/runtime/pjrt/hlo_collectives.h"

#include <algorithm>
#include <array>

#include "skein/base/error.h"
#include "skein/runtime/pjrt/proto_reader.h"

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

struct HloShape {
  int64_t bytes = 0;            // of all that is in it
  std::vector<HloShape> parts;  // of a tuple
};

// ShapeProto: element_type 2, dimensions 3, tuple_shapes 4.
HloShape read_shape(std::string_view message) {
  HloShape shape;
  uint64_t type = 0;
  int64_t elements = 1;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number == 2) type = field->integer;
    if (field->number == 3) {
      for (const int64_t dim : ProtoReader::integers(*field)) elements *= dim;
    }
    if (field->number == 4) shape.parts.push_back(read_shape(field->bytes));
  }
  shape.bytes = elements * bytes_of_type(type);
  for (const HloShape& part : shape.parts) shape.bytes += part.bytes;
  return shape;
}

// The ranks of the first of several ReplicaGroups: replica_ids 1. All groups have equal sizes.
int64_t read_group(std::string_view message) {
  int64_t ranks = 0;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number == 1) ranks += std::ssize(ProtoReader::integers(*field));
  }
  return ranks;
}

// CollectiveDeviceListProto: replica_groups 1; iota_replica_group_list 2, whose
// num_devices_per_group is 2.
int64_t read_device_list(std::string_view message) {
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number == 1) return read_group(field->bytes);
    if (field->number != 2) continue;
    ProtoReader iota(field->bytes);
    while (const auto number = iota.next()) {
      if (number->number == 2) return static_cast<int64_t>(number->integer);
    }
  }
  return 0;
}

// HloInstructionProto: opcode 2, shape 3, replica_groups 49, collective_device_list 87.
void read_instruction(std::string_view message, std::vector<CompiledCollective>& found) {
  std::string_view opcode;
  HloShape shape;
  int64_t ranks = 0;
  ProtoReader reader(message);
  while (const auto field = reader.next()) {
    if (field->number == 2) opcode = field->bytes;
    if (field->number == 3) shape = read_shape(field->bytes);
    if (field->number == 49 && ranks == 0) ranks = read_group(field->bytes);
    if (field->number == 87) ranks = read_device_list(field->bytes);
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
  ProtoReader reader(module);
  while (const auto computation = reader.next()) {
    if (computation->number != 3) continue;
    ProtoReader instructions(computation->bytes);
    while (const auto instruction = instructions.next()) {
      if (instruction->number == 2) read_instruction(instruction->bytes, found);
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
  ProtoReader reader(program);  // HloModuleProtoWithConfig: hlo_module 1
  while (const auto field = reader.next()) {
    if (field->number == 1) return read_module(field->bytes);
  }
  return {};
}

}  // namespace skein
