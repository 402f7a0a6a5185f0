// One rank of several that run ops with their collectives: threads of this process, each with a
// device of the kind under test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "skein/backends/backend.h"
#include "skein/runtime/device.h"
#include "tests/comm/rank_threads.h"
#include "tests/ops/graph_run.h"

namespace skein::op_test {

class GroupRank {
 public:
  // Its group is all ranks, under `name`.
  GroupRank(const WorldOptions& options, const std::string& name)
      : rank(options.rank),
        device_(backend().make({.threads = 1, .index = rank}, test_device().kernels)),
        host_(make_world(options)) {
    std::vector<int> all;
    for (int member = 0; member < options.size; ++member) all.push_back(member);
    if (backend().make_world != nullptr) {
      world_ = backend().make_world(*host_, {.stream = device_->stream()});
    }
    group_ = (world_ ? world_ : host_)->group(all, name);
  }
  ~GroupRank() {
    group_.reset();  // lets go of the memory
    for (const auto& [memory, bytes] : memory_) device_->release(memory, bytes);
  }
  GroupRank(const GroupRank&) = delete;
  GroupRank& operator=(const GroupRank&) = delete;

  // Memory for a local value, NaN all over.
  View allocate(DType dtype, const Shape& shape, int64_t row_padding = 0) {
    View view{nullptr, dtype, shape, shape.cols() + (shape.rank() < 2 ? 0 : row_padding)};
    const std::vector<uint8_t> fill(static_cast<size_t>(bytes_of(view)) + 1, uint8_t{0xff});
    const auto bytes = static_cast<int64_t>(fill.size());
    view.data = device_->allocate(bytes, "a test");
    memory_[view.data] = bytes;
    device_->upload(view.data, fill.data(), bytes);
    return view;
  }
  void* allocate_scratch(int64_t bytes) {
    return allocate(DType::kI32, Shape{(bytes + 3) / 4}).data;
  }
  void write(const View& view, const std::vector<double>& values) {
    std::vector<uint8_t> host(static_cast<size_t>(bytes_of(view)), uint8_t{0xff});
    GraphRun::fill(at_host(view, host), values);
    device_->upload(view.data, host.data(), bytes_of(view));
  }
  // What lies between rows must be as it was.
  std::vector<double> read(const View& view) {
    std::vector<uint8_t> host(static_cast<size_t>(bytes_of(view)));
    device_->download(host.data(), view.data, bytes_of(view));
    const View here = at_host(view, host);
    const std::vector<double> values = GraphRun::values_of(here);
    std::vector<uint8_t> again(host.size(), uint8_t{0xff});
    GraphRun::fill(at_host(view, again), values);
    EXPECT_EQ(again, host) << "a kernel wrote between rows";
    return values;
  }

  // A call of `node` with these operands; `ticket` where it has a channel.
  KernelCall bind(const Graph& graph, const Node& node, const std::vector<View>& inputs,
                  const std::vector<View>& outputs, int64_t* ticket = nullptr) {
    KernelCall call{.inputs = inputs, .outputs = outputs, .attrs = node.attrs};
    if (node.op->localize != nullptr) node.op->localize(graph.call(node), rank, call.attrs);
    call.stream = device_->stream();
    call.communicator = group_.get();
    call.ticket = ticket;
    const Kernel& kernel = device_->kernels().at(node.op->name);
    if (kernel.scratch_bytes != nullptr)
      call.scratch = allocate_scratch(kernel.scratch_bytes(call));
    if (kernel.prepare != nullptr) call.state = kernel.prepare(call);
    return call;
  }
  void run(const Node& node, const KernelCall& call) {
    device_->kernels().at(node.op->name).run(call);
  }
  void wait(int64_t ticket) { group_->wait(ticket); }

  const int rank;

 private:
  static const Backend& backend() { return find_backend(test_device().is_cpu ? "cpu" : "cuda"); }
  static int64_t bytes_of(const View& view) {
    return view.rows() * view.row_stride * size_of(view.dtype);
  }
  static View at_host(View view, std::vector<uint8_t>& host) {
    view.data = host.data();
    return view;
  }

  std::unique_ptr<Device> device_;
  std::unique_ptr<Communicator> host_, world_, group_;
  std::map<void*, int64_t> memory_;
};

// `body` in every rank. A GPU each, where the device under test is one.
inline void run_group(int size, const std::string& name,
                      const std::function<void(GroupRank&)>& body) {
  if (test_device().compiles) GTEST_SKIP() << "collectives are compiled: tests/pjrt tries them";
  setenv("CUDA_EMULATION_DEVICES", std::to_string(size).c_str(), 1);
  const bool can_run = test_device().is_cpu || find_backend("cuda").num_devices() >= size;
  if (can_run) {
    comm_test::run_rank_threads(size, [&](const WorldOptions& options) {
      GroupRank rank(options, name);
      body(rank);
    });
  }
  unsetenv("CUDA_EMULATION_DEVICES");
  if (!can_run) GTEST_SKIP() << size << " ranks need as many GPUs";
}

}  // namespace skein::op_test
