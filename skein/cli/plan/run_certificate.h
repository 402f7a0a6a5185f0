// `skein plan CONFIG --compile TARGET`.
#pragma once

#include <string>

#include "skein/plan/plan.h"
#include "skein/runtime/aot_compiler.h"

namespace skein {

struct CertificateOptions {
  AotTarget target;
  std::string program;  // "": all
  int64_t rank = -1;    // of the stage that is compiled; -1: all stages
  bool json = false;
};

void run_certificate(const PlanRequest& request, const CertificateOptions& options);

}  // namespace skein
