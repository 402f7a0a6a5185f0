#include "skein/cli/plan/run_certificate.h"

#include <utility>

#include "skein/backends/backend.h"
#include "skein/base/error.h"
#include "skein/cli/shared/print.h"
#include "skein/plan/compilers/certificate.h"
#include "skein/plan/planned_run.h"

namespace skein {
namespace {

std::vector<int64_t> ranks_to_compile(const PlanRequest& request, int64_t rank) {
  if (rank >= 0) return {rank};
  const PlannedRun run(request.config, request.model, request.ranks);
  std::vector<int64_t> ranks;
  for (int64_t stage = 0; stage < run.layout().mesh.size("pp"); ++stage) {
    ranks.push_back(run.rank_of(stage, 0));
  }
  return ranks;
}

}  // namespace

void run_certificate(const PlanRequest& request, const CertificateOptions& options) {
  const Backend& backend = find_backend_to_plan("pjrt");
  if (backend.make_aot_compiler == nullptr) {
    fail(ErrorCode::kUsage, "--compile {}: {}", options.target.name, backend.only_plans);
  }
  if (options.target.plugin.empty()) {
    fail(ErrorCode::kUsage,
         "--compile {} needs the compiler: give --plugin PATH, or device.pjrt_plugin",
         options.target.name);
  }
  const std::unique_ptr<AotCompiler> compiler = backend.make_aot_compiler(options.target);
  bool is_first = true;
  const auto show = [&](const StageCertificate& stage) {
    if (options.json) return;
    if (std::exchange(is_first, false)) {
      print_line(stdout, "Compiled for {} by {}", options.target.name, compiler->platform());
    }
    if (stage.programs.size() == 1) print_text(stdout, certificate_heading(stage));
    print_text(stdout, program_text(stage.programs.back()));
    std::fflush(stdout);
  };
  OrderedJson json = {{"target", options.target.name},
                      {"compiler", compiler->platform()},
                      {"stages", OrderedJson::array()}};
  for (const int64_t rank : ranks_to_compile(request, options.rank)) {
    const StageCertificate stage = compile_stage(request, rank, options.program, *compiler, show);
    if (!options.json && options.program.empty()) {
      print_text(stdout, certificate_summary(stage));
    }
    json["stages"].push_back(certificate_to_json(stage));
  }
  if (options.json) print_json(json);
}

}  // namespace skein
