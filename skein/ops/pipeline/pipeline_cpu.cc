#include <cstring>

#include "skein/base/error.h"
#include "skein/comm/communicator.h"
#include "skein/ir/kernel.h"

namespace skein {
namespace {

Collective message(const KernelCall& call, CollectiveKind kind, void* data) {
  const View& view = call.outputs[0];
  Collective message{.kind = kind, .dtype = view.dtype};
  const int64_t elements = view.shape.num_elements();
  message.parts.push_back({.input = data, .output = data, .elements = elements});
  message.peer = static_cast<int>(call.attrs.integer("peer"));
  message.label = kind == CollectiveKind::kSend ? "pipeline send" : "pipeline receive";
  return message;
}

std::shared_ptr<const void> prepare(const KernelCall& call) {
  if (call.communicator == nullptr) {
    fail(ErrorCode::kInternal, "[send, receive] group '{}' has no communicator",
         call.attrs.text("axis"));
  }
  for (const View& view : call.outputs) {
    if (!view.is_contiguous()) fail(ErrorCode::kInternal, "[send, receive] rows have gaps");
  }
  return nullptr;
}

void run_send(const KernelCall& call) {
  const View &x = call.inputs[0], &buffer = call.outputs[0];
  if (*call.ticket >= 0) call.communicator->wait(*call.ticket);
  const int64_t size = size_of(x.dtype), row_bytes = x.cols() * size;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < x.rows(); ++row) {
    std::memcpy(buffer.as<char>() + row * row_bytes, x.as<const char>() + row * x.row_stride * size,
                static_cast<size_t>(row_bytes));
  }
  *call.ticket = call.communicator->start(message(call, CollectiveKind::kSend, buffer.data));
}

void run_receive(const KernelCall& call) {
  call.communicator->run(message(call, CollectiveKind::kReceive, call.outputs[0].data));
}

}  // namespace

void add_pipeline_cpu_kernels(KernelTable& table) {
  table["send"] = {.run = run_send, .prepare = prepare};
  table["receive"] = {.run = run_receive, .prepare = prepare};
}

}  // namespace skein
