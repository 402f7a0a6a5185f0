// `skein plan --compile`: what the vendor's own compiler says of the programs of a step, beside
// what the plan says of the same programs. Nothing is run, and no device is needed.
//
// Arguments, results  the cells of a program (stablehlo/cells.h): what outlives it, in the arenas.
//                     The plan counts their elements; a compiler may lay them out wider
// Temporaries         the plan's part of the workspace; the compiler's arrays while it runs
// Operations          the plan's, of all instructions; the compiler counts what is in a loop once
// Exchanges           collectives with other ranks of the stage. The plan counts an all-reduce of
//                     a value as two, since it sends as much as a reduce-scatter and an all-gather
// Units               bytes on each rank; seconds
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "skein/base/text/json.h"
#include "skein/ir/program.h"
#include "skein/plan/plan.h"
#include "skein/runtime/aot_compiler.h"

namespace skein {

// Collectives of one kind between groups of one size.
struct Exchanges {
  std::string kind;  // "all-gather"
  int64_t ranks = 1;
  int64_t count = 0, sent_bytes = 0;
};
// Of all kinds.
Exchanges total(const std::vector<Exchanges>& exchanges);
// Sorted and added up.
std::vector<Exchanges> exchanges_of(const std::vector<CompiledCollective>& collectives);

struct PlannedProgram {
  ArenaBytes argument_bytes{};  // by arena
  int64_t result_bytes = 0, donated_bytes = 0;
  int64_t temporary_bytes = 0;
  double flops = 0;
  std::vector<Exchanges> exchanges;

  int64_t arguments() const;
};

struct ProgramCertificate {
  std::string name;
  int64_t text_bytes = 0;
  double text_seconds = 0;  // to write it
  PlannedProgram planned;
  AotProgram compiled;
};

struct StageCertificate {
  int64_t stage = 0, num_stages = 1;
  int64_t replicas = 1;
  int64_t kept_bytes = 0;       // of the plan: of arenas that outlive programs, on the device
  int64_t workspace_bytes = 0;  // of the plan
  std::vector<ProgramCertificate> programs;

  int64_t most_temporaries() const;  // of the compiler
};

// Called after each program, with what is done so far.
using CertificateProgress = std::function<void(const StageCertificate&)>;

// Of the stage of `rank`. `wanted`: a program or a piece of one; "": all.
StageCertificate compile_stage(const PlanRequest& request, int64_t rank, const std::string& wanted,
                               AotCompiler& compiler, const CertificateProgress& progress = {});

// A table: its heading, the rows of each program, and what all together take.
std::string certificate_heading(const StageCertificate& stage);
std::string program_text(const ProgramCertificate& program);
std::string certificate_summary(const StageCertificate& stage);
OrderedJson certificate_to_json(const StageCertificate& stage);

}  // namespace skein
