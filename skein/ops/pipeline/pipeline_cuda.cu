#include "skein/ops/cuda/copy_rows_cuda.h"
#include "skein/ops/pipeline/pipeline_kernels.h"

namespace skein {
namespace {

// The stream first waits until what the buffer held before is sent.
void run_send(const KernelCall& call) {
  pipeline::run_send(call, [&](const RowCopy& copy) { cuda::copy_rows(call, copy); });
}

}  // namespace

void add_pipeline_cuda_kernels(KernelTable& table) {
  table["send"] = {.run = run_send, .prepare = pipeline::prepare<CollectiveKind::kSend>};
  table["receive"] = {.run = pipeline::run_receive,
                      .prepare = pipeline::prepare<CollectiveKind::kReceive>};
}

}  // namespace skein
