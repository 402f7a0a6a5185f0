#include "skein/stablehlo/hlo_proto.h"

#include <map>
#include <set>

#include "skein/base/error.h"
#include "skein/base/files/protobuf.h"

namespace skein::stablehlo {
namespace {

// Field numbers of hlo.proto and xla_data.proto.
constexpr int kProtoModule = 1;
namespace module_field {
constexpr int kName = 1, kComputations = 3, kProgramShape = 4, kEntryId = 6, kAliases = 8,
              kDeviceAssignment = 15;
}
namespace computation_field {
constexpr int kInstructions = 2, kId = 5, kRootId = 6;
}
namespace instruction_field {
constexpr int kId = 35, kOperandIds = 36, kControlIds = 37, kReplicaGroups = 49;
constexpr int kDeviceList = 87;
}  // namespace instruction_field
constexpr int kDeviceListGroups = 1;
constexpr int kShapeParameters = 1, kShapeResult = 2;
constexpr int kElementType = 2, kTupleShapes = 4, kTuple = 13;
constexpr int kAliasEntries = 1, kOutputIndex = 1, kParameterNumber = 2;

ProtobufReader reader_of(std::string_view bytes) { return {bytes, "an HLO module"}; }

class IdNumbers {
 public:
  // Gives numbers to the instructions of the module.
  explicit IdNumbers(std::string_view module) {
    for (ProtobufReader m = reader_of(module); m.next();) {
      if (m.field() != module_field::kComputations) continue;
      for (ProtobufReader c = reader_of(m.bytes()); c.next();) {
        if (c.field() != computation_field::kInstructions) continue;
        for (ProtobufReader i = reader_of(c.bytes()); i.next();) {
          if (i.field() == instruction_field::kId) add(static_cast<int64_t>(i.varint()));
        }
      }
    }
  }

  uint64_t operator()(int64_t id) const {
    const auto known = numbers_.find(id);
    if (known == numbers_.end()) {
      fail(ErrorCode::kCorrupt, "an HLO module: it refers to instruction {}, which it has not", id);
    }
    return known->second;
  }

 private:
  void add(int64_t id) {
    if (!numbers_.emplace(id, numbers_.size() + 1).second) {
      fail(ErrorCode::kCorrupt, "an HLO module: it has instruction {} twice", id);
    }
  }
  std::map<int64_t, uint64_t> numbers_;
};

void append_ids(std::string& to, int field, const ProtobufReader& reader, const IdNumbers& ids) {
  std::string packed;
  for (const int64_t id : reader.integers()) append_protobuf_varint(packed, ids(id));
  append_protobuf_bytes(to, field, packed);
}

// The field that older XLA reads, of the one that newer XLA writes.
void append_groups(std::string& to, std::string_view device_list) {
  bool has_groups = false;
  for (ProtobufReader list = reader_of(device_list); list.next();) {
    if (list.field() != kDeviceListGroups) continue;
    append_protobuf_bytes(to, instruction_field::kReplicaGroups, list.bytes());
    has_groups = true;
  }
  if (!has_groups && !device_list.empty()) {
    fail(ErrorCode::kUnsupported,
         "an HLO module: a collective names its replica groups by a formula, expected a list: use "
         "a plugin that writes lists, such as lammps-jax-pjrt-cpu 0.11.2");
  }
}

std::string with_small_ids(std::string_view instruction, const IdNumbers& ids) {
  std::string changed;
  bool has_groups = false;
  std::string_view device_list;
  for (ProtobufReader i = reader_of(instruction); i.next();) {
    switch (i.field()) {
      case instruction_field::kId:
        append_protobuf_number(changed, instruction_field::kId,
                               ids(static_cast<int64_t>(i.varint())));
        break;
      case instruction_field::kOperandIds:
      case instruction_field::kControlIds:
        append_ids(changed, static_cast<int>(i.field()), i, ids);
        break;
      case instruction_field::kReplicaGroups:
        has_groups = true;
        changed += i.whole();
        break;
      case instruction_field::kDeviceList:
        device_list = i.bytes();
        changed += i.whole();
        break;
      default:
        changed += i.whole();
    }
  }
  if (!has_groups) append_groups(changed, device_list);
  return changed;
}

std::string renumbered(std::string_view module) {
  const IdNumbers ids(module);
  std::string changed;
  for (ProtobufReader m = reader_of(module); m.next();) {
    if (m.field() == module_field::kDeviceAssignment) continue;
    if (m.field() != module_field::kComputations) {
      changed += m.whole();
      continue;
    }
    std::string computation;
    for (ProtobufReader c = reader_of(m.bytes()); c.next();) {
      if (c.field() == computation_field::kInstructions) {
        append_protobuf_bytes(computation, computation_field::kInstructions,
                              with_small_ids(c.bytes(), ids));
      } else if (c.field() == computation_field::kRootId) {
        append_protobuf_number(computation, computation_field::kRootId,
                               ids(static_cast<int64_t>(c.varint())));
      } else {
        computation += c.whole();
      }
    }
    append_protobuf_bytes(changed, module_field::kComputations, computation);
  }
  return changed;
}

// A tuple counts as its elements.
int64_t num_arrays(std::string_view shape) {
  bool is_tuple = false;
  int64_t elements = 0;
  for (ProtobufReader s = reader_of(shape); s.next();) {
    if (s.field() == kElementType) is_tuple = s.varint() == kTuple;
    if (s.field() == kTupleShapes) ++elements;
  }
  return is_tuple ? elements : 1;
}

void read_program_shape(std::string_view shape, HloModule& module) {
  for (ProtobufReader p = reader_of(shape); p.next();) {
    if (p.field() == kShapeParameters) ++module.num_parameters;
    if (p.field() == kShapeResult) module.num_results = num_arrays(p.bytes());
  }
}

void read_aliases(std::string_view aliases, HloModule& module) {
  module.donated.assign(static_cast<size_t>(module.num_parameters), -1);
  for (ProtobufReader a = reader_of(aliases); a.next();) {
    if (a.field() != kAliasEntries) continue;
    std::vector<int64_t> output;
    uint64_t parameter = 0;
    for (ProtobufReader entry = reader_of(a.bytes()); entry.next();) {
      if (entry.field() == kOutputIndex) {
        for (const int64_t index : entry.integers()) output.push_back(index);
      }
      if (entry.field() == kParameterNumber) parameter = entry.varint();
    }
    if (parameter >= module.donated.size() || output.size() > 1) {
      fail(ErrorCode::kCorrupt, "an HLO module of {} parameters donates parameter {}",
           module.num_parameters, parameter);
    }
    module.donated[parameter] = output.empty() ? 0 : static_cast<int>(output[0]);
  }
}

}  // namespace

HloModule read_hlo_module(std::string bytes) {
  HloModule module;
  module.bytes = std::move(bytes);
  std::string_view aliases;
  std::set<uint64_t> computations;
  uint64_t entry = 0;
  for (ProtobufReader m = reader_of(module.bytes); m.next();) {
    if (m.field() == module_field::kName) module.name = m.bytes();
    if (m.field() == module_field::kProgramShape) read_program_shape(m.bytes(), module);
    if (m.field() == module_field::kAliases) aliases = m.bytes();
    if (m.field() == module_field::kEntryId) entry = m.varint();
    if (m.field() != module_field::kComputations) continue;
    for (ProtobufReader c = reader_of(m.bytes()); c.next();) {
      if (c.field() == computation_field::kInstructions) ++module.num_instructions;
      if (c.field() == computation_field::kId) computations.insert(c.varint());
    }
  }
  if (!computations.contains(entry)) {
    fail(ErrorCode::kCorrupt, "an HLO module: its entry is computation {}, which it has not",
         entry);
  }
  read_aliases(aliases, module);
  return module;
}

HloModule portable_hlo(std::string_view hlo_proto) {
  for (ProtobufReader proto = reader_of(hlo_proto); proto.next();) {
    if (proto.field() == kProtoModule) return read_hlo_module(renumbered(proto.bytes()));
  }
  fail(ErrorCode::kCorrupt, "an HloProto of {} bytes holds no module", hlo_proto.size());
}

}  // namespace skein::stablehlo
