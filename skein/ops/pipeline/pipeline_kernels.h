// The kernels of send and receive, except for the device's row copy.
#pragma once

#include <memory>

#include "skein/base/error.h"
#include "skein/comm/communicator.h"
#include "skein/ir/kernel.h"
#include "skein/ops/row_copy.h"

namespace skein::pipeline {

inline Collective message(const KernelCall& call, CollectiveKind kind, const View& view,
                          void* data) {
  Collective message{.kind = kind, .dtype = view.dtype};
  const int64_t elements = view.shape.num_elements();
  message.parts.push_back({.input = data, .output = data, .elements = elements});
  message.peer = static_cast<int>(call.attrs.integer("peer"));
  message.label = kind == CollectiveKind::kSend ? "pipeline send" : "pipeline receive";
  return message;
}

template <CollectiveKind kind>
std::shared_ptr<const void> prepare(const KernelCall& call) {
  if (call.communicator == nullptr) {
    fail(ErrorCode::kInternal, "[send, receive] group '{}' has no communicator",
         call.attrs.text("axis"));
  }
  for (const View& view : call.outputs) {
    if (!view.is_contiguous()) fail(ErrorCode::kInternal, "[send, receive] rows have gaps");
  }
  call.communicator->prepare(message(call, kind, call.outputs[0], nullptr));
  return nullptr;
}

template <typename CopyRows>
void run_send(const KernelCall& call, const CopyRows& copy_rows) {
  const View& x = call.inputs[0];
  const int64_t depth = call.attrs.integer("depth");
  int64_t& turn = call.ticket[depth];  // of the send before; -1 before the first
  turn = (turn + 1) % depth;
  int64_t& ticket = call.ticket[turn];
  if (ticket >= 0) call.communicator->wait(ticket);
  char* buffer = call.outputs[0].as<char>() + turn * x.num_bytes();
  copy_rows(RowCopy::pack(buffer, x));
  ticket = call.communicator->start(message(call, CollectiveKind::kSend, x, buffer));
}

inline void run_receive(const KernelCall& call) {
  const View& y = call.outputs[0];
  call.communicator->run(message(call, CollectiveKind::kReceive, y, y.data));
}

}  // namespace skein::pipeline
