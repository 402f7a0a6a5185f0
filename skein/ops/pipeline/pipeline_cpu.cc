#include <cstring>

#include "skein/ops/pipeline/pipeline_kernels.h"

namespace skein {
namespace {

using CollectiveKind::kReceive;
using CollectiveKind::kSend;

void copy_rows(const RowCopy& copy) {
#pragma omp parallel for schedule(static)
  for (int64_t row = 0; row < copy.rows; ++row) {
    std::memcpy(copy.to + row * copy.to_stride, copy.from + row * copy.from_stride,
                static_cast<size_t>(copy.row_bytes));
  }
}

void run_send(const KernelCall& call) { pipeline::run_send(call, copy_rows); }

}  // namespace

void add_pipeline_cpu_kernels(KernelTable& table) {
  table["send"] = {.run = run_send, .prepare = pipeline::prepare<kSend>};
  table["receive"] = {.run = pipeline::run_receive, .prepare = pipeline::prepare<kReceive>};
}

}  // namespace skein
