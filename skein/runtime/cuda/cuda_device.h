// One NVIDIA GPU: plain memory, one stream for what a step computes, one that brings inputs while
// it works, more for reading back what no step writes.
#pragma once

#include <cuda_runtime.h>

#include <deque>
#include <memory>
#include <vector>

#include "skein/runtime/cuda/device_readers.h"
#include "skein/runtime/cuda/staging.h"
#include "skein/runtime/cuda/stream_progress.h"
#include "skein/runtime/device.h"

namespace skein {

// GPUs that the driver shows to this process; 0 where there is no driver.
int num_cuda_devices();
// Must be called before the driver starts, which then loads all kernels at once. A kernel that is
// loaded later would wait for a collective, and that for another rank.
void expect_several_cuda_ranks();

class CudaDevice final : public Device {
 public:
  CudaDevice(const DeviceOptions& options, KernelTable kernels);
  ~CudaDevice() override;

  const std::string& kind() const override { return kind_; }
  std::string arithmetic() const override { return arithmetic_; }
  const KernelTable& kernels() const override { return kernels_; }
  void require_room(int64_t device_bytes, int64_t host_bytes) override;
  std::optional<DeviceMemory> own_memory() const override;
  void* allocate(int64_t bytes, const std::string& what) override;
  void release(void* memory, int64_t bytes) override;
  std::optional<double> peak_flops(DType dtype) const override;
  void* allocate_on_host(int64_t bytes, const std::string& what) override;
  void release_on_host(void* memory, int64_t bytes) override;
  void upload(void* device, const void* host, int64_t bytes) override;
  void download(void* host, const void* device, int64_t bytes) override;
  void fill_zero(void* device, int64_t bytes) override;
  void start_copy(void* to, const void* from, int64_t bytes) override;
  void synchronize() override;

  void* stream() const override { return stream_; }
  int depth() const override { return 2; }
  int64_t ceiling_size() const override;
  bool checks_ops() const override { return check_ops_; }
  void download_later(void* host, const void* device, int64_t bytes) override;
  int64_t record_event() override;
  Clock::time_point wait(int64_t event) override;
  int64_t record_time() override;
  double seconds_at(int64_t time) override;
  void forget_times() override { num_timed_events_ = 0; }
  void begin_range(const std::string& name) override;
  void end_range() override;
  int64_t name_breadcrumb(const std::string& place) override { return progress_->name(place); }
  void pass_breadcrumb(int64_t place) override { progress_->pass_breadcrumb(place, stream_); }
  void pass_step(int64_t step) override { progress_->pass_step(step, stream_); }
  std::string failure() const override;
  std::unique_ptr<Recording> record(const std::function<void()>& steps) override;

 private:
  [[noreturn]] void refuse(int64_t bytes, const std::string& what, int64_t free_bytes,
                           int64_t total_bytes) const;
  void check_ran(cudaError_t error) const;
  std::string describe(cudaError_t error) const;
  void* allocate_unfilled(int64_t bytes, const std::string& what);

  std::string kind_ = "cuda";
  std::string arithmetic_;
  KernelTable kernels_;
  int index_;
  bool check_ops_;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<StreamProgress> progress_;
  std::unique_ptr<StagingRing> staging_, inputs_;
  bool recording_ = false;
  std::unique_ptr<Readers> readers_;
  struct RecordedEvent {
    int64_t number;
    cudaEvent_t event;
    Clock::time_point recorded_at;
  };
  std::deque<RecordedEvent> recorded_events_;
  std::vector<cudaEvent_t> free_events_;  // unused
  int64_t last_event_ = 0;
  // The event that was waited for last, and when it completed.
  cudaEvent_t completed_event_ = nullptr;
  Clock::time_point completed_at_;
  std::vector<cudaEvent_t> timed_events_;  // the first num_timed_events_ are of the queue
  size_t num_timed_events_ = 0;
};

}  // namespace skein
