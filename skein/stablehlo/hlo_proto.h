// XLA's own form of a program (HloModuleProto), for compilers that take no StableHLO, such as
// neuronx-cc. XLA's CPU plugins make it (runtime/pjrt/hlo_dump.h); a compiler that was built on an
// older XLA needs two things of it changed.
//
// Ids       XLA of 2025 and later numbers instructions (computation << 32) + n; older ones refuse
//           ids of 2^31 and more. Ids become 1, 2, 3, ... in the order of the module
// Groups    the replica groups of a collective are in a field that older XLA does not know and
//           would pass over: it would exchange among all replicas. They are written in both fields
// Devices   which devices the module was compiled for is left out: they are others
// Errors    Error{kCorrupt}: not such a message. Error{kUnsupported}: groups that are not listed
// Source    openxla/xla: xla/service/hlo.proto, xla/xla_data.proto; the refusal is in
//           HloInstruction::CreateFromProto ("Instruction with id > INT_MAX")
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace skein::stablehlo {

struct HloModule {
  std::string bytes;  // a serialized HloModuleProto
  std::string name;
  int64_t num_instructions = 0;
  int64_t num_parameters = 0, num_results = 0;  // of the entry computation
  std::vector<int> donated;  // by parameter: the result that takes its memory; -1: none
};

// Of a serialized HloProto, as XLA dumps it.
HloModule portable_hlo(std::string_view hlo_proto);
// The same facts of a serialized HloModuleProto, whose bytes stay as they are.
HloModule read_hlo_module(std::string bytes);

}  // namespace skein::stablehlo
