#include "skein/stablehlo/cells.h"

#include <algorithm>
#include <iterator>
#include <tuple>

namespace skein::stablehlo {
namespace {

Rows rows_of(const Cell& cell) {
  return {cell.offset_bytes, cell.row_bytes(), cell.stride_bytes(), cell.num_rows()};
}

bool share_memory_in_one_slot(const Cell& a, const Cell& b) {
  return a.arena == b.arena && share_memory(rows_of(a), rows_of(b));
}

// Calls `act` for the cells that may share memory with this one, until it returns true.
template <typename Act>
bool any_near(const Cells& cells, int64_t longest, const Cell& cell, const Act& act) {
  const Cell first{.arena = cell.arena, .offset_bytes = cell.offset_bytes - longest};
  const int64_t end = cell.offset_bytes + cell.extent_bytes();
  for (auto it = cells.lower_bound(first); it != cells.end(); ++it) {
    if (it->arena != cell.arena || it->offset_bytes >= end) break;
    if (act(*it)) return true;
  }
  return false;
}

}  // namespace

Cell Cell::of(const Operand& operand, int64_t ahead) {
  return {operand.arena,      operand.offset_bytes,
          operand.slot_bytes, operand.slot_bytes > 0 ? ahead : 0,
          operand.row_stride, {element_of(operand.dtype), operand.shape.dims()}};
}

int64_t Cell::row_bytes() const {
  return (type.dims.empty() ? 1 : type.dims.back()) * bytes_of(type.element);
}

int64_t Cell::num_rows() const {
  const int64_t row = std::max<int64_t>(1, row_bytes());
  return type.dims.size() < 2 ? 1 : std::max<int64_t>(1, type.num_bytes() / row);
}

int64_t Cell::stride_bytes() const { return row_stride * bytes_of(type.element); }

bool Cell::operator<(const Cell& other) const {
  const auto key = [](const Cell& cell) {
    return std::tie(cell.arena, cell.offset_bytes, cell.ahead, cell.row_stride, cell.type.element,
                    cell.type.dims);
  };
  return key(*this) < key(other);
}

bool share_memory(const Rows& a, const Rows& b) {
  if (a.end() <= b.begin || b.end() <= a.begin) return false;
  const int64_t stride = a.stride_bytes;
  if (a.num_rows == 1 || b.num_rows == 1 || stride != b.stride_bytes || stride <= 0) return true;
  const int64_t between = ((b.begin - a.begin) % stride + stride) % stride;
  return between < a.row_bytes || between + b.row_bytes > stride;
}

void CellMap::insert(const Cell& cell) {
  longest_ = std::max(longest_, cell.extent_bytes());
  cells_.insert(cell);
}

void CellMap::erase_shared(const Cell& cell) {
  std::vector<Cell> shared;
  any_near(cells_, longest_, cell, [&](const Cell& other) {
    if (other.ahead == cell.ahead && !(other == cell) && share_memory_in_one_slot(other, cell)) {
      shared.push_back(other);
    }
    return false;
  });
  for (const Cell& other : shared) cells_.erase(other);
}

bool CellMap::holds_part_of(const Cell& cell) const {
  return any_near(cells_, longest_, cell,
                  [&](const Cell& other) { return share_memory_in_one_slot(other, cell); });
}

Cells cells_read(std::span<const Instruction> instructions) {
  Cells read, written;
  for (const Instruction& instruction : instructions) {
    for (const Operand& operand : instruction.inputs) {
      if (!operand.present()) continue;
      const Cell cell = Cell::of(operand, instruction.ahead);
      if (!written.contains(cell)) read.insert(cell);
    }
    for (const Operand& operand : instruction.outputs) {
      written.insert(Cell::of(operand, instruction.ahead));
    }
  }
  return read;
}

Cells cells_kept(const ProgramSet& programs) {
  Cells kept;
  for (const Program& program : programs.programs) {
    for (Cell cell : cells_read(program.instructions)) {
      cell.ahead = 0;
      kept.insert(cell);
    }
  }
  for (const auto& [name, operand] : programs.named) kept.insert(Cell::of(operand, 0));
  return kept;
}

}  // namespace skein::stablehlo
