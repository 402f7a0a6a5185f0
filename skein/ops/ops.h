// The list of ops. Every folder skein/ops/<folder>/ provides
//
//   std::vector<const OpDef*> <folder>_ops();             the op and its derivative ops
//   void add_<folder>_cpu_kernels(KernelTable& table);    in <folder>_cpu.cc
//   void add_<folder>_cuda_kernels(KernelTable& table);   in <folder>_cuda.cu, where CUDA is built;
//                                                         scratch: skein/ops/cuda_rules.h
//   void add_<folder>_stablehlo_rules(stablehlo::RuleTable& rules);   in <folder>_stablehlo.cc
//
// and is named by one line of ops.def.
#pragma once

#include "skein/ir/kernel.h"
#include "skein/ir/op_def.h"
#include "skein/stablehlo/rule.h"

namespace skein {

OpTable all_ops();
KernelTable cpu_kernels();
KernelTable cuda_kernels();  // where CUDA is built
// Of cpu_kernels(), those of ops that communicate: for devices that compile everything else.
KernelTable host_collectives();
stablehlo::RuleTable stablehlo_rules();

}  // namespace skein
