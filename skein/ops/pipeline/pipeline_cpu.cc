#include <cstring>

#include "skein/base/error.h"
#include "skein/comm/communicator.h"
#include "skein/ir/kernel.h"

namespace skein {
namespace {

Collective message(const KernelCall& call, CollectiveKind kind, const View& view, void* data) {
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
  const View& x = call.inputs[0];
  const int64_t depth = call.attrs.integer("depth");
  int64_t& turn = call.ticket[depth];  // of the send before; -1 before the first
  turn = (turn + 1) % depth;
  int64_t& ticket = call.ticket[turn];
  if (ticket >= 0) call.communicator->wait(ticket);
  char* buffer = call.outputs[0].as<char>() + turn * x.num_bytes();
  const int64_t size = size_of(x.dtype), row_bytes = x.cols() * size;
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < x.rows(); ++row) {
    std::memcpy(buffer + row * row_bytes, x.as<const char>() + row * x.row_stride * size,
                static_cast<size_t>(row_bytes));
  }
  ticket = call.communicator->start(message(call, CollectiveKind::kSend, x, buffer));
}

void run_receive(const KernelCall& call) {
  const View& y = call.outputs[0];
  call.communicator->run(message(call, CollectiveKind::kReceive, y, y.data));
}

}  // namespace

void add_pipeline_cpu_kernels(KernelTable& table) {
  table["send"] = {.run = run_send, .prepare = prepare};
  table["receive"] = {.run = run_receive, .prepare = prepare};
}

}  // namespace skein
