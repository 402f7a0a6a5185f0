#include "skein/runtime/pjrt/pjrt_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/runtime/host_memory.h"
#include "skein/runtime/op_range.h"

namespace skein {
namespace {

using HloCell = stablehlo::Cell;

// The host's copy of what lies between two addresses is no longer needed: whole pages are given
// back.
void give_back(char* begin, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page * page;
  const uintptr_t last = (reinterpret_cast<uintptr_t>(begin) + bytes) / page * page;
  if (last > first) ::madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

stablehlo::Rows rows_of(const PjrtDevice::Cell& cell) {
  stablehlo::Rows rows = cell.rows;
  rows.begin = static_cast<int64_t>(reinterpret_cast<uintptr_t>(cell.address));
  return rows;
}

// From the first byte of a view to its end, with what lies between its rows.
int64_t extent_bytes(const View& view) {
  if (view.rows() == 0) return 0;
  return ((view.rows() - 1) * view.row_stride + view.cols()) * size_of(view.dtype);
}

}  // namespace

// A compiled piece of a program, bound to the cells of one slot.
class PjrtRecording : public Recording {
 public:
  // `ops`: those that it runs, for errors.
  PjrtRecording(PjrtDevice& device, std::shared_ptr<const PjrtProcess::Compiled> compiled,
                std::string ops)
      : device_(device), compiled_(std::move(compiled)), ops_(std::move(ops)) {}

  void replay() override {
    std::vector<PJRT_Buffer*> arrays;
    for (PjrtDevice::Cell* argument : arguments) {
      device_.to_device(*argument);
      arrays.push_back(argument->array.get());
    }
    std::vector<PjrtBuffer> owned;
    try {
      owned = device_.process_->execute(device_.index_, *compiled_, arrays);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kPeerLost) throw;
      fail(error.code(), "{}: {}", ops_, error.what());
    }
    if (!results.empty()) {
      const std::string step = device_.step_ > 0 ? fmt::format("step {}: ", device_.step_) : "";
      device_.in_flight_.started(step + ops_, device_.client_.when_ready(owned.front()));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      device_.take_result(*results[i], std::move(owned[i]));
    }
  }

  std::vector<PjrtDevice::Cell*> arguments, results;

 private:
  PjrtDevice& device_;
  std::shared_ptr<const PjrtProcess::Compiled> compiled_;
  std::string ops_;
};

PjrtDevice::PjrtDevice(std::shared_ptr<PjrtProcess> process, int64_t index, KernelTable kernels,
                       stablehlo::RuleTable rules, int64_t executions_in_flight)
    : arithmetic_("pjrt " + process->client().platform()),
      kernels_(std::move(kernels)),
      rules_(std::move(rules)),
      process_(std::move(process)),
      client_(process_->client()),
      index_(index),
      in_flight_(executions_in_flight) {}

PjrtDevice::~PjrtDevice() { process_->leave(); }

std::optional<DeviceMemory> PjrtDevice::own_memory() const {
  const auto told = client_.device_memory(index_);
  if (told) return told;
  const HostMemory host = read_host_memory();
  const MemoryLimit* limit = host.tightest();
  return limit == nullptr ? DeviceMemory{} : DeviceMemory{limit->total_bytes, limit->free_bytes};
}

void* PjrtDevice::allocate(int64_t bytes, const std::string& what) {
  if (bytes == 0) return nullptr;
  void* memory = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    fail(ErrorCode::kNoSpace, "cannot map {} for {}: {}", format_bytes(bytes), what,
         errno_text(errno));
  }
  return memory;
}

void PjrtDevice::release(void* memory, int64_t bytes) {
  if (memory == nullptr) return;
  auto* begin = static_cast<char*>(memory);
  cells_.erase(cells_.lower_bound(begin), cells_.lower_bound(begin + bytes));
  ::munmap(memory, static_cast<size_t>(bytes));
}

template <typename Act>
void PjrtDevice::for_each_cell(const char* begin, int64_t bytes, const Act& act) {
  char* first = const_cast<char*>(begin) - longest_cell_;
  for (auto it = cells_.lower_bound(first); it != cells_.end() && it->first < begin + bytes; ++it) {
    if (it->second->end() > begin) act(*it->second);
  }
}

void PjrtDevice::upload(void* device, const void* host, int64_t bytes) {
  auto* begin = static_cast<char*>(device);
  for_each_cell(begin, bytes, [&](Cell& cell) {
    const bool replaces_all = begin <= cell.address && cell.end() <= begin + bytes;
    if (!replaces_all) to_host(cell);
    cell.on_host = true;
    cell.on_device = false;
  });
  std::memcpy(device, host, static_cast<size_t>(bytes));
}

void PjrtDevice::download(void* host, const void* device, int64_t bytes) {
  const auto* begin = static_cast<const char*>(device);
  bool is_done = false;
  for_each_cell(begin, bytes, [&](Cell& cell) {
    if (!cell.on_device || cell.on_host || is_done) return;
    if (cell.address == begin && cell.bytes() == bytes && cell.is_dense()) {
      client_.get(cell.array, host, bytes);
      is_done = true;
    } else {
      to_host(cell);
    }
  });
  if (!is_done) std::memcpy(host, device, static_cast<size_t>(bytes));
}

void PjrtDevice::fill_zero(void* device, int64_t bytes) {
  auto* begin = static_cast<char*>(device);
  for_each_cell(begin, bytes, [&](Cell& cell) {
    if (begin > cell.address || cell.end() > begin + bytes) to_host(cell);
    cell.on_host = true;
    cell.on_device = false;
  });
  std::memset(device, 0, static_cast<size_t>(bytes));
}

void PjrtDevice::start_copy(void* to, const void* from, int64_t bytes) {
  std::vector<char> between(static_cast<size_t>(bytes));
  download(between.data(), from, bytes);
  upload(to, between.data(), bytes);
}

void PjrtDevice::synchronize() {
  in_flight_.finish();
  for (const auto& [address, cell] : cells_) {
    if (cell->on_device) client_.wait(cell->array);
  }
}

PjrtDevice::Cell& PjrtDevice::cell_at(char* address, const HloCell& cell) {
  const auto [begin, end] = cells_.equal_range(address);
  for (auto it = begin; it != end; ++it) {
    if (it->second->type == cell.type) return *it->second;
  }
  auto made = std::make_unique<Cell>();
  made->address = address;
  made->type = cell.type;
  made->rows = {0, cell.row_bytes(), cell.stride_bytes(), cell.num_rows()};
  for_each_cell(address, made->end() - address, [&](Cell& other) {
    if (!stablehlo::share_memory(rows_of(*made), rows_of(other))) return;
    made->overlaps.push_back(&other);
    other.overlaps.push_back(made.get());
  });
  longest_cell_ = std::max<int64_t>(longest_cell_, made->end() - address);
  return *cells_.emplace(address, std::move(made))->second;
}

void PjrtDevice::to_device(Cell& cell) {
  if (cell.on_device) return;
  if (!cell.on_host) {
    fail(ErrorCode::kInternal, "a program reads {} that another array in its memory replaced",
         cell.type.to_string());
  }
  if (cell.is_dense()) {
    cell.array = client_.put(cell.address, cell.type, index_);
  } else {
    const stablehlo::Rows& rows = cell.rows;
    std::vector<char> dense(static_cast<size_t>(cell.bytes()));
    for (int64_t row = 0; row < rows.num_rows; ++row) {
      std::memcpy(dense.data() + row * rows.row_bytes, cell.address + row * rows.stride_bytes,
                  static_cast<size_t>(rows.row_bytes));
    }
    cell.array = client_.put(dense.data(), cell.type, index_);
  }
  cell.on_device = true;
  cell.on_host = false;
  // An array that shares the memory may have its value there.
  if (cell.is_dense() && cell.overlaps.empty()) give_back(cell.address, cell.bytes());
}

void PjrtDevice::to_host(Cell& cell) {
  // Neither: another array in its memory replaced it.
  if (cell.on_host || !cell.on_device) return;
  if (cell.is_dense()) {
    client_.get(cell.array, cell.address, cell.bytes());
  } else {
    const stablehlo::Rows& rows = cell.rows;
    std::vector<char> dense(static_cast<size_t>(cell.bytes()));
    client_.get(cell.array, dense.data(), cell.bytes());
    for (int64_t row = 0; row < rows.num_rows; ++row) {
      std::memcpy(cell.address + row * rows.stride_bytes, dense.data() + row * rows.row_bytes,
                  static_cast<size_t>(rows.row_bytes));
    }
  }
  cell.on_host = true;
}

void PjrtDevice::take_result(Cell& cell, PjrtBuffer array) {
  if (cell.on_host && cell.is_dense()) give_back(cell.address, cell.bytes());
  cell.array = std::move(array);
  cell.on_device = true;
  cell.on_host = false;
  for (Cell* other : cell.overlaps) other->on_host = other->on_device = false;
}

void PjrtDevice::begin_host_access(const View& view) {
  if (view.data == nullptr) return;
  for_each_cell(view.as<char>(), extent_bytes(view), [&](Cell& cell) {
    if (cell.on_device) to_host(cell);
  });
}

void PjrtDevice::end_host_write(const View& view) {
  for_each_cell(view.as<char>(), extent_bytes(view), [&](Cell& cell) {
    cell.on_host = true;
    cell.on_device = false;
  });
}

std::vector<std::unique_ptr<Recording>> PjrtDevice::compile(const ProgramToCompile& to_compile) {
  const auto& [programs, program, pieces, arenas, slot] = to_compile;
  const stablehlo::Cells kept = stablehlo::cells_kept(programs);
  std::vector<std::unique_ptr<Recording>> recordings;
  for (const stablehlo::Piece& piece : pieces) {
    const std::string name = stablehlo::piece_name(program, piece);
    const auto instructions =
        std::span(program.instructions).subspan(piece.begin, piece.end - piece.begin);
    const stablehlo::CellMap kept_by_piece = stablehlo::cells_kept_by(piece, program, kept);
    auto compiled = process_->compile(
        index_, {name, programs.mesh, programs.rank, instructions, kept_by_piece}, rules_);
    auto recording = std::make_unique<PjrtRecording>(
        *this, compiled, describe_ops(program, piece.begin, piece.end - 1));
    const auto bind = [&](const std::vector<HloCell>& cells, std::vector<Cell*>& to) {
      for (const HloCell& cell : cells) {
        auto* arena = static_cast<char*>(arenas[static_cast<size_t>(cell.arena)]);
        to.push_back(&cell_at(arena + cell.offset_in_slot(slot, program.num_slots), cell));
      }
    };
    bind(compiled->module.arguments, recording->arguments);
    bind(compiled->module.results, recording->results);
    recordings.push_back(std::move(recording));
  }
  return recordings;
}

}  // namespace skein
