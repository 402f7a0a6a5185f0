// What outlives a program, or a piece of one, lies in cells: the places in arenas that its
// instructions read before they write them, and those that they write and somebody reads later.
#pragma once

#include <set>
#include <span>

#include "skein/ir/program.h"
#include "skein/stablehlo/tensor.h"

namespace skein::stablehlo {

// Where a value lies, for the micro-batch in the program's own slot, or in one ahead of it.
struct Cell {
  Arena arena = Arena::kWorkspace;
  int64_t offset_bytes = 0;
  int64_t slot_bytes = 0;
  int64_t ahead = 0;
  int64_t row_stride = 0;
  Type type;

  static Cell of(const Operand& operand, int64_t ahead);
  bool in_slots() const { return slot_bytes > 0; }
  // From the beginning of the arena.
  int64_t offset_in_slot(int64_t program_slot, int64_t num_slots) const {
    return offset_bytes + (program_slot + ahead) % num_slots * slot_bytes;
  }
  int64_t row_bytes() const;
  int64_t num_rows() const;
  int64_t stride_bytes() const;
  // From its first byte to its end, with what lies between its rows.
  int64_t extent_bytes() const { return (num_rows() - 1) * stride_bytes() + row_bytes(); }

  // Whether both are the same place, in whatever slot.
  bool operator<(const Cell& other) const;
  bool operator==(const Cell& other) const { return !(*this < other) && !(other < *this); }
};

using Cells = std::set<Cell>;

// Rows of memory: where the first begins, how long one is, and how far it is to the next.
struct Rows {
  int64_t begin = 0, row_bytes = 0, stride_bytes = 0, num_rows = 1;
  int64_t end() const { return begin + (num_rows - 1) * stride_bytes + row_bytes; }
};
// Whether two have a byte in common. Columns of one matrix have none.
bool share_memory(const Rows& a, const Rows& b);

// Cells by place, to ask which share memory with another one.
class CellMap {
 public:
  void insert(const Cell& cell);
  // Removes those that share memory with it, but for itself.
  void erase_shared(const Cell& cell);
  // Whether it, or one that shares memory with it, is there, in whatever slot.
  bool holds_part_of(const Cell& cell) const;
  const Cells& cells() const { return cells_; }

 private:
  Cells cells_;
  int64_t longest_ = 0;
};

// What the instructions, in this order, read before they write it.
Cells cells_read(std::span<const Instruction> instructions);
// What any program of the set reads first, or the host does: what a program must leave behind. With
// `ahead` 0, whichever slot it is read in.
Cells cells_kept(const ProgramSet& programs);

}  // namespace skein::stablehlo
