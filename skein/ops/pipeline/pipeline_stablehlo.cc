// A message goes to the program of another stage, which the text of one program cannot name: the
// host carries it between them, and a program that is compiled as a whole must not contain it.
#include "skein/base/error.h"
#include "skein/stablehlo/rule.h"

namespace skein {
namespace {

using namespace stablehlo;  // NOLINT(google-build-using-namespace)

[[noreturn]] void fail_message(std::string_view op, const RuleCall& call) {
  fail(ErrorCode::kUnsupported,
       "[{}] over '{}' with stage {}: messages between the programs of pipeline stages have no "
       "StableHLO; the host must carry them",
       op, call.constants().text("axis"), call.constants().integer("peer"));
}

std::vector<Tensor> send(const RuleCall& call) { fail_message("send", call); }
std::vector<Tensor> receive(const RuleCall& call) { fail_message("receive", call); }

}  // namespace

void add_pipeline_stablehlo_rules(stablehlo::RuleTable& rules) {
  rules["send"] = send;
  rules["receive"] = receive;
}

}  // namespace skein
