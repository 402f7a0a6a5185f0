// A device behind a PJRT plugin. Programs are compiled as a whole from StableHLO text, and arrays
// live where the plugin puts them.
//
// Memory   An arena is a range of host addresses that stands for arrays: every cell of a program
//          (stablehlo/lower.h) is one array, known by its address. What the host uploads goes to
//          the range, and from there to the array before a program reads it; what the host
//          downloads comes from the array. Pages of the range that an array has replaced are given
//          back to the system, so that nothing is held twice for long
// Host     What a kernel of the host is about to read comes from the arrays to the range, and what
//          it wrote goes back before a program reads it
// Errors   Those of PjrtProcess. An error while a program runs appears where its results are read
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>

#include "skein/runtime/device.h"
#include "skein/runtime/pjrt/executions_in_flight.h"
#include "skein/runtime/pjrt/pjrt_process.h"

namespace skein {

class PjrtDevice : public Device {
 public:
  // `index`: among the devices of the process. `executions_in_flight`: see ExecutionsInFlight.
  PjrtDevice(std::shared_ptr<PjrtProcess> process, int64_t index, KernelTable kernels,
             stablehlo::RuleTable rules, int64_t executions_in_flight);
  ~PjrtDevice() override;

  const std::string& kind() const override { return kind_; }
  std::string arithmetic() const override { return arithmetic_; }
  const KernelTable& kernels() const override { return kernels_; }
  // What the plugin says, or else what the host has.
  std::optional<DeviceMemory> own_memory() const override;
  void* allocate(int64_t bytes, const std::string& what) override;
  void release(void* memory, int64_t bytes) override;
  void upload(void* device, const void* host, int64_t bytes) override;
  void download(void* host, const void* device, int64_t bytes) override;
  void fill_zero(void* device, int64_t bytes) override;
  void start_copy(void* to, const void* from, int64_t bytes) override;
  void download_later(void* host, const void* device, int64_t bytes) override {
    download(host, device, bytes);
  }
  void synchronize() override;

  bool compiles() const override { return true; }
  int64_t ranks_together() const override { return process_->size(); }
  std::vector<std::unique_ptr<Recording>> compile(const ProgramToCompile& program) override;
  void begin_host_access(const View& view) override;
  void end_host_write(const View& view) override;
  std::string compiled() const override { return process_->compiler().compiled(); }
  void pass_step(int64_t step) override { step_ = step; }
  std::string failure() const override { return in_flight_.failure(); }

  // An array, and the host memory that stands for it.
  struct Cell {
    char* address = nullptr;
    stablehlo::Rows rows;  // that begin at the address
    stablehlo::Type type;
    PjrtBuffer array;
    bool on_host = true;               // the host's memory has the value
    bool on_device = false;            // the array has it
    std::vector<Cell*> overlaps = {};  // that share memory with it, of which one has a value

    char* end() const { return address + (rows.end() - rows.begin); }
    bool is_dense() const { return rows.num_rows == 1 || rows.stride_bytes == rows.row_bytes; }
    int64_t bytes() const { return rows.num_rows * rows.row_bytes; }
  };

 private:
  friend class PjrtRecording;

  Cell& cell_at(char* address, const stablehlo::Cell& cell);
  // Calls `act` for the cells that share memory with the range.
  template <typename Act>
  void for_each_cell(const char* begin, int64_t bytes, const Act& act);
  void to_device(Cell& cell);
  void to_host(Cell& cell);
  void take_result(Cell& cell, PjrtBuffer array);

  const std::string kind_ = "pjrt";
  const std::string arithmetic_;
  const KernelTable kernels_;
  const stablehlo::RuleTable rules_;
  std::shared_ptr<PjrtProcess> process_;
  const PjrtClient& client_;
  int64_t index_;
  int64_t step_ = 0;  // of training; 0: none yet
  mutable ExecutionsInFlight in_flight_;
  std::multimap<char*, std::unique_ptr<Cell>> cells_;  // by address
  int64_t longest_cell_ = 0;                           // bytes from its address to its end
};

}  // namespace skein
