// The CPU: memory in huge pages where the system provides them, kernels on one OpenMP pool.
#pragma once

#include "skein/runtime/device.h"

namespace skein {

class CpuDevice : public Device {
 public:
  // Sets the OpenMP thread count of the process, since there is only one pool. `arithmetic` names
  // what decides how its kernels round (Device::arithmetic).
  CpuDevice(int threads, KernelTable kernels, std::string arithmetic = "cpu");

  const std::string& kind() const override { return kind_; }
  std::string arithmetic() const override { return arithmetic_; }
  const KernelTable& kernels() const override { return kernels_; }
  void require_room(int64_t device_bytes, int64_t host_bytes) override;
  void* allocate(int64_t bytes, const std::string& what) override;
  void release(void* memory, int64_t bytes) override;
  void upload(void* device, const void* host, int64_t bytes) override;
  void download(void* host, const void* device, int64_t bytes) override;
  void fill_zero(void* device, int64_t bytes) override;
  void synchronize() override {}

 private:
  std::string kind_ = "cpu";
  std::string arithmetic_;
  KernelTable kernels_;
};

}  // namespace skein
