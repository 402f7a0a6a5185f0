#include "skein/ops/cuda_rules.h"

namespace skein {

void add_embedding_cuda_rules(KernelTable&);
void add_head_norm_cuda_rules(KernelTable&);
void add_layer_norm_cuda_rules(KernelTable&);
void add_linear_cuda_rules(KernelTable&);
void add_muon_cuda_rules(KernelTable&);
void add_redistribute_cuda_rules(KernelTable&);
void add_rms_norm_cuda_rules(KernelTable&);
void add_sum_squares_cuda_rules(KernelTable&);

KernelTable cuda_rules(const CudaRuleOptions& options) {
  KernelTable table;
  add_attention_cuda_rules(table, options);
  add_embedding_cuda_rules(table);
  add_head_norm_cuda_rules(table);
  add_layer_norm_cuda_rules(table);
  add_linear_cuda_rules(table);
  add_muon_cuda_rules(table);
  add_redistribute_cuda_rules(table);
  add_rms_norm_cuda_rules(table);
  add_sum_squares_cuda_rules(table);
  return table;
}

}  // namespace skein
