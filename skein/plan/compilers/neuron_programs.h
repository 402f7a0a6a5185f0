// The programs of a step as files for neuronx-cc, the compiler for AWS Trainium: skein plan
// --write-hlo FOLDER --for trn1|trn1n|trn2. The compiler needs no Trainium; it is not called here.
//
// Format  of a program "forward": forward.mlir, its StableHLO text; forward.hlo.pb, an
//         HloModuleProto; compile.sh, which makes forward.neff of it; programs.json, which names
//         the arrays that each program takes and returns, in order. docs/trainium.md
// Errors  Error{kUnsupported}: what compilers for Trainium are known not to take is in a program;
//         the message lists it. Error{kUsage}: no plugin of XLA for CPUs in device.pjrt_plugin
// Source  Neuron's documentation: "Neuron Compiler CLI Reference Guide (neuronx-cc)"
#pragma once

#include <cstdint>
#include <string>

#include "skein/plan/plan.h"

namespace skein {

struct NeuronTarget {
  std::string name;  // "trn1", "trn1n", "trn2"
  int64_t optimization_level = 2;
};

// The options of `neuronx-cc compile` after the file, but for --output and --logfile.
std::string neuronx_cc_options(const NeuronTarget& target);

// Writes the files of the stage of `rank`. Returns lines for people that say what was written.
std::string write_neuron_programs(const PlanRequest& request, int64_t rank,
                                  const NeuronTarget& target, const std::string& folder);

}  // namespace skein
