#include "skein/ops/ops.h"

namespace skein {

#define SKEIN_OP_FOLDER(folder)                  \
  std::vector<const OpDef*> folder##_ops();      \
  void add_##folder##_cpu_kernels(KernelTable&); \
  void add_##folder##_stablehlo_rules(stablehlo::RuleTable&);
#include "skein/ops/ops.def"
#undef SKEIN_OP_FOLDER

OpTable all_ops() {
  OpTable table;
#define SKEIN_OP_FOLDER(folder) \
  for (const OpDef* op : folder##_ops()) table.push_back(op);
#include "skein/ops/ops.def"
#undef SKEIN_OP_FOLDER
  return table;
}

KernelTable cpu_kernels() {
  KernelTable table;
#define SKEIN_OP_FOLDER(folder) add_##folder##_cpu_kernels(table);
#include "skein/ops/ops.def"
#undef SKEIN_OP_FOLDER
  return table;
}

KernelTable host_collectives() {
  KernelTable table;
  add_redistribute_cpu_kernels(table);
  add_pipeline_cpu_kernels(table);
  return table;
}

stablehlo::RuleTable stablehlo_rules() {
  stablehlo::RuleTable rules;
#define SKEIN_OP_FOLDER(folder) add_##folder##_stablehlo_rules(rules);
#include "skein/ops/ops.def"
#undef SKEIN_OP_FOLDER
  return rules;
}

}  // namespace skein
