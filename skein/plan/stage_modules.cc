#include "skein/plan/stage_modules.h"

#include <fmt/ranges.h>

#include "skein/base/error.h"
#include "skein/compile/whole_step.h"
#include "skein/ops/ops.h"

namespace skein {
namespace {

// The compiler orders operations itself.
StepSpec without_overlap(StepSpec spec) {
  spec.overlap = spec.in_pairs = false;
  return spec;
}

std::vector<int64_t> ranks_of_stage(const Mesh& mesh, int64_t rank) {
  const int axis = mesh.find("pp");
  std::vector<int64_t> ranks;
  for (int64_t other = 0; other < mesh.num_ranks(); ++other) {
    if (axis < 0 || mesh.coordinates(other)[axis] == mesh.coordinates(rank)[axis]) {
      ranks.push_back(other);
    }
  }
  return ranks;
}

}  // namespace

StageModules::StageModules(StepSpec spec, std::string wanted, bool is_narrow)
    : spec_(without_overlap(std::move(spec))),
      wanted_(std::move(wanted)),
      graphs_(training_graphs(spec_)),
      programs_(plan_training(graphs_, spec_, {})),
      ranks_(ranks_of_stage(programs_.mesh, programs_.rank)),
      rules_(stablehlo_rules()),
      is_narrow_(is_narrow) {
  if (wanted_.empty() || wanted_.starts_with(kStepProgram)) join_step(programs_, spec_);
}

StageModule StageModules::module_of(const Program& program, const stablehlo::Piece& piece,
                                    const stablehlo::Cells& kept,
                                    std::vector<stablehlo::LocalizedAttrs>& localized) const {
  const auto instructions =
      std::span(program.instructions).subspan(piece.begin, piece.end - piece.begin);
  // Programs that come from no graph of the model are the same on all ranks.
  const bool knows_ranks = static_cast<size_t>(program.graph) < localized.size();
  const stablehlo::CellMap left = stablehlo::cells_kept_by(piece, program, kept);
  stablehlo::ModuleRequest request{
      stablehlo::piece_name(program, piece), programs_.mesh, ranks_, {}, left};
  request.instructions.assign(knows_ranks ? 1 : ranks_.size(), instructions);
  if (knows_ranks) request.localized = &localized[static_cast<size_t>(program.graph)];
  request.is_narrow = is_narrow_;
  return {request.name, instructions, stablehlo::write_module(request, rules_)};
}

void StageModules::for_each(std::string_view option,
                            const std::function<void(const StageModule&)>& act) const {
  std::vector<stablehlo::LocalizedAttrs> localized;
  for (const Graph* graph : {&graphs_.training, &graphs_.evaluation}) {
    localized.emplace_back(*graph, ranks_);
  }
  const stablehlo::Cells kept = stablehlo::cells_kept(programs_);
  std::vector<std::string> names;
  bool is_found = false;
  for (const Program& program : programs_.programs) {
    for (const stablehlo::Piece& piece :
         stablehlo::compiled_pieces(program, programs_.mesh, programs_.rank, std::ssize(ranks_))) {
      names.push_back(stablehlo::piece_name(program, piece));
      if (!wanted_.empty() && program.name != wanted_ && names.back() != wanted_) continue;
      is_found = true;
      act(module_of(program, piece, kept, localized));
    }
  }
  if (!is_found) {
    fail(ErrorCode::kUsage, "{} {}: expected one of {}", option, wanted_, fmt::join(names, ", "));
  }
}

}  // namespace skein
