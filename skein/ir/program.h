// A program: a flat list of instructions over offsets into a few arenas. The executor runs it, the
// plan prices it and the simulator times it; it is the same on every device.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "skein/ir/graph.h"
#include "skein/ir/kernel.h"

namespace skein {

enum class Arena {
  kWeights,          // parameters in the compute dtype
  kGradients,        // their fp32 sums
  kOptimizer,        // moments, master weights
  kInputs,           // the batch, step scalars, results that the host reads
  kActivations,      // kept from forward to backward, for one micro-batch in flight
  kWorkspace,        // everything else and kernels' scratch; values share memory over time
  kHostActivations,  // kept as well, but in host memory: outputs of `stash` (ops/offload)
  kRounded,          // weights rounded to 8 bits, made anew in every step (ops/linear)
  kCache,            // keys and values of texts that are being read (ops/paged_attention)
};
inline constexpr int kNumArenas = 9;
std::string_view arena_name(Arena arena);

using ArenaBytes = std::array<int64_t, kNumArenas>;

// Every storage starts at a multiple of this.
inline constexpr int64_t kArenaAlignment = 256;

// Where a value lies.
struct Operand {
  Arena arena = Arena::kWorkspace;
  int64_t offset_bytes = 0;
  DType dtype = DType::kF32;
  Shape shape;             // local; rank 0: an absent optional input
  int64_t row_stride = 0;  // elements
  // Bytes from one in-flight micro-batch to the next; 0 where all of them share the memory.
  int64_t slot_bytes = 0;

  bool present() const { return shape.rank() > 0; }
  // The operand as a view, if the arena begins at `base`.
  View view(void* base, int64_t slot = 0) const {
    return {static_cast<char*>(base) + offset_bytes + slot * slot_bytes, dtype, shape, row_stride};
  }
};

struct Instruction {
  const OpDef* op = nullptr;
  Attrs attrs;
  std::string scope;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  int64_t scratch_offset_bytes = 0;  // in the workspace
  int64_t scratch_bytes = 0;
  Cost cost;
  int node = -1;      // index in the graph that it was planned from
  int64_t ahead = 0;  // works on the micro-batch in the slot so much further on than the program's

  int64_t slot_of(int64_t program_slot, int64_t num_slots) const {
    return (program_slot + ahead) % num_slots;
  }
};

struct Program {
  // "forward", "backward", "pair", "update", "evaluate"; "forward.1" for chunk 1
  std::string name;
  std::vector<Instruction> instructions;
  int64_t num_slots = 1;  // micro-batches that may be in flight at once
  int graph = 0;          // index among the graphs that were planned together
};

// All programs of a run over one set of arenas.
struct ProgramSet {
  Mesh mesh;
  int64_t rank = 0;
  ArenaBytes arena_bytes{};
  // Arenas in host memory, which the device reads and writes in place.
  std::array<bool, kNumArenas> on_host{};
  std::vector<Program> programs;
  // Graph inputs and outputs, by name: what the host, checkpoints and other programs may touch.
  std::map<std::string, Operand, std::less<>> named;
  std::map<std::string, TensorType, std::less<>> types;  // of the same names

  const Program& program(std::string_view name) const;  // throws Error{kInternal}
  const Operand& operand(std::string_view name) const;  // throws Error{kInternal}
  const TensorType& type(std::string_view name) const;  // throws Error{kInternal}
};

// Addresses for binding during planning; nobody dereferences them.
std::array<void*, kNumArenas> made_up_bases();

// The kernel call of an instruction, for arenas that start at `bases` and the micro-batch in
// `slot`.
KernelCall bind_views(const Instruction& instruction, const std::array<void*, kNumArenas>& bases,
                      int64_t slot = 0);

// "program forward: 12 instructions\n  0 linear weights+0 ...": one line an instruction.
std::string to_string(const Program& program);

}  // namespace skein
