// Lists of row copies on the stream, many in one launch: a list travels in the kernel's arguments.
#pragma once

#include <cstdint>
#include <vector>

#include "skein/ops/cuda/launch_cuda.h"
#include "skein/ops/row_copy.h"

namespace skein::cuda {

inline constexpr int kCopyThreads = 256;
inline constexpr int kCopyUnits = 4;  // a thread's loads in flight

struct RowCopyList {
  static constexpr int kCapacity = 72;  // of at most 4 KB
  RowCopy copies[kCapacity];
  unsigned first_block[kCapacity + 1];  // blocks before each copy, and all
  uint8_t unit_bytes[kCapacity];        // that a thread moves at once
  int size;
};
static_assert(sizeof(RowCopyList) <= 4096);

template <typename Unit>
__device__ void copy_units(const RowCopy& copy, int64_t first) {
  const int64_t cols = copy.row_bytes / static_cast<int64_t>(sizeof(Unit));
  const int64_t count = copy.rows * cols;
  const bool is_short = count <= 0xffffffffll;  // divided in 32 bits
  Unit units[kCopyUnits];
  int64_t rows[kCopyUnits], offsets[kCopyUnits];
  for (int i = 0; i < kCopyUnits; ++i) {
    const int64_t index = first + i * kCopyThreads;
    rows[i] = copy.rows == 1 ? 0
              : is_short     ? static_cast<unsigned>(index) / static_cast<unsigned>(cols)
                             : index / cols;
    offsets[i] = (index - rows[i] * cols) * static_cast<int64_t>(sizeof(Unit));
    if (index >= count) continue;
    units[i] = *reinterpret_cast<const Unit*>(copy.from + rows[i] * copy.from_stride + offsets[i]);
  }
  for (int i = 0; i < kCopyUnits; ++i) {
    if (first + i * kCopyThreads >= count) continue;
    *reinterpret_cast<Unit*>(copy.to + rows[i] * copy.to_stride + offsets[i]) = units[i];
  }
}

__global__ static void __launch_bounds__(kCopyThreads) copy_listed_rows(RowCopyList list) {
  wait_for_previous_kernel();
  int which = 0, end = list.size;  // the copy that has the block is one of [which, end)
  while (end - which > 1) {
    const int middle = (which + end) / 2;
    (list.first_block[middle] <= blockIdx.x ? which : end) = middle;
  }
  const RowCopy& copy = list.copies[which];
  const int64_t block = blockIdx.x - list.first_block[which];
  const int64_t first = block * (kCopyThreads * kCopyUnits) + threadIdx.x;
  switch (list.unit_bytes[which]) {
    case 16:
      return copy_units<uint4>(copy, first);
    case 4:
      return copy_units<unsigned>(copy, first);
    default:
      return copy_units<uint16_t>(copy, first);
  }
}

inline void add_row_copy(RowCopy copy, RowCopyList& list) {
  if (copy.rows == 0 || copy.row_bytes == 0 || copy.to == copy.from) return;
  if (!copy.has_gaps()) {  // one long row
    copy.row_bytes *= copy.rows;
    copy.rows = 1;
    copy.to_stride = copy.from_stride = copy.row_bytes;
  }
  const uintptr_t bits = reinterpret_cast<uintptr_t>(copy.to) |
                         reinterpret_cast<uintptr_t>(copy.from) |
                         static_cast<uintptr_t>(copy.to_stride | copy.from_stride | copy.row_bytes);
  const int64_t unit = bits % 16 == 0 ? 16 : bits % 4 == 0 ? 4 : 2;
  const unsigned blocks = blocks_for(copy.rows * copy.row_bytes, unit * kCopyThreads * kCopyUnits);
  const int at = list.size++;
  list.copies[at] = copy;
  list.unit_bytes[at] = static_cast<uint8_t>(unit);
  list.first_block[at + 1] = list.first_block[at] + blocks;
}

inline void copy_rows(const KernelCall& call, const RowCopyList& list) {
  launch(call, list.first_block[list.size], kCopyThreads, copy_listed_rows, list);
}

inline void copy_rows(const KernelCall& call, const RowCopy& copy) {
  RowCopyList list = {};
  add_row_copy(copy, list);
  copy_rows(call, list);
}

// For `prepare`: as few lists as hold them.
inline std::vector<RowCopyList> list_row_copies(const std::vector<RowCopy>& copies) {
  std::vector<RowCopyList> lists;
  for (const RowCopy& copy : copies) {
    if (lists.empty() || lists.back().size == RowCopyList::kCapacity) lists.emplace_back();
    add_row_copy(copy, lists.back());
  }
  return lists;
}

}  // namespace skein::cuda
