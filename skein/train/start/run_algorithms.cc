#include "skein/train/start/run_algorithms.h"

#include <algorithm>

#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

bool is_first_of_stage(const Mesh& mesh, int64_t rank) {
  const std::vector<int64_t> at = mesh.coordinates(rank);
  for (int axis = 0; axis < mesh.num_axes(); ++axis) {
    if (at[static_cast<size_t>(axis)] > 0 && mesh.axis(axis).name != "pp") return false;
  }
  return true;
}

// Throws the same error on every rank, which names the first rank that differs from rank 0.
void expect_one_library(Communicator& world, const std::string& mine) {
  const std::string of_first = text_of_rank_0(world, mine);
  const int32_t differs = sum_over_ranks(world, mine == of_first ? 0 : 1);
  if (differs == 0) return;
  int32_t first = 0;
  while (sum_over_ranks(world, world.rank() == first && mine != of_first ? 1 : 0) == 0) ++first;
  const std::string theirs = text_of_rank(world, first, mine);
  fail(ErrorCode::kUsage,
       "rank {} has {}, rank 0 has {}: they would round differently, and their copies of the "
       "weights would part; give all ranks the same kind of GPU and the same cuBLASLt",
       first, theirs, of_first);
}

// The choices in `mine` for problems that `all` lacks.
AlgorithmChoices new_ones(const AlgorithmChoices& mine, const AlgorithmChoices& all) {
  AlgorithmChoices result{mine.library, {}};
  for (const auto& choice : mine.by_problem) {
    if (!all.by_problem.contains(choice.first)) result.by_problem.insert(choice);
  }
  return result;
}

}  // namespace

AlgorithmKernels algorithm_kernels(Executor& executor) {
  const Backend& backend = find_backend(executor.device().kind());
  if (backend.chosen_algorithms == nullptr) return {};
  return {backend.chosen_algorithms, backend.adopt_algorithms,
          [&executor] { executor.choose_algorithms(); }};
}

AlgorithmChoices agree_on_algorithms(Communicator& world, const Mesh& mesh,
                                     const AlgorithmKernels& kernels,
                                     const AlgorithmChoices& kept) {
  if (!kernels.chosen) return kept;
  const std::string library = kernels.chosen().library;
  expect_one_library(world, library);
  AlgorithmChoices all{library, {}};
  if (kept.library == library) {
    all = kept;
  } else if (!kept.library.empty() && world.rank() == 0) {
    log::warn(
        "the checkpoint's matrix products were of {}, these are of {}: losses may differ from here "
        "on in their last bits",
        kept.library, library);
  }
  kernels.adopt(all);
  const size_t num_kept = all.by_problem.size();
  if (is_first_of_stage(mesh, world.rank())) kernels.choose();
  for (int rank = 0; rank < world.size(); ++rank) {
    if (!is_first_of_stage(mesh, rank)) continue;
    const Json mine = algorithms_to_json(new_ones(kernels.chosen(), all));
    const std::string text =
        text_of_rank(world, rank, exact_json(mine, "the algorithms of a rank"));
    all.by_problem.merge(algorithms_from_json(Json::parse(text), "another rank").by_problem);
    kernels.adopt(all);
  }
  // Measures nothing: every problem has an adopted choice by now.
  if (!is_first_of_stage(mesh, world.rank())) kernels.choose();
  if (world.rank() == 0) {
    log::info("algorithms of {} matrix products: {} of the checkpoint, {} chosen on this machine",
              all.by_problem.size(), num_kept, all.by_problem.size() - num_kept);
  }
  return all;
}

Json algorithms_to_json(const AlgorithmChoices& choices) {
  if (choices.library.empty()) return nullptr;
  return {{"library", choices.library}, {"by_problem", choices.by_problem}};
}

AlgorithmChoices algorithms_from_json(const Json& json, const std::string& where) {
  if (json.is_null()) return {};
  const auto library = json.find("library"), by_problem = json.find("by_problem");
  const bool is_whole = json.is_object() && library != json.end() && library->is_string() &&
                        by_problem != json.end() && by_problem->is_object() &&
                        std::all_of(by_problem->begin(), by_problem->end(),
                                    [](const Json& value) { return value.is_string(); });
  if (!is_whole) {
    fail(ErrorCode::kInvalid,
         "{}: algorithms: expected an object with \"library\", a string, and \"by_problem\", "
         "strings by name",
         where);
  }
  return {library->get<std::string>(), by_problem->get<std::map<std::string, std::string>>()};
}

}  // namespace skein
