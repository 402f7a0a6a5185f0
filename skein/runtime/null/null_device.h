// No memory and no hardware: for planning and simulating what would run elsewhere.
#pragma once

#include "skein/runtime/device.h"

namespace skein {

class NullDevice final : public Device {
 public:
  // `kernels` are those of the device that is planned for; only their scratch sizes are used.
  explicit NullDevice(KernelTable kernels) : kernels_(std::move(kernels)) {}

  const std::string& kind() const override { return kind_; }
  const KernelTable& kernels() const override { return kernels_; }
  bool computes() const override { return false; }
  void* allocate(int64_t, const std::string&) override { return nullptr; }
  void release(void*, int64_t) override {}
  void upload(void*, const void*, int64_t) override {}
  void download(void*, const void*, int64_t) override {}
  void fill_zero(void*, int64_t) override {}
  void synchronize() override {}

 private:
  std::string kind_ = "null";
  KernelTable kernels_;
};

}  // namespace skein
