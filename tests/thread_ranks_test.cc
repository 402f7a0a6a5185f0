// Training steps of several ranks that are threads of this process, each with a device under test
// (SKEIN_TEST_DEVICE): losses are those that transformers recorded, and with recorded pieces of
// programs the same bits as op by op.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "skein/backends/backend.h"
#include "skein/infer/inference.h"
#include "skein/train/loop/step_runner.h"
#include "tests/comm/rank_threads.h"
#include "tests/golden_training.h"

namespace skein {
namespace {

constexpr int64_t kSteps =
    4;  // a program runs, is recorded in its second run, and is started again

struct Layout {
  const char* name;
  int64_t pp, dp, cp, tp, zero;
  bool offloads = false;
  Mesh mesh() const { return Mesh::standard(pp, dp, cp, tp); }
};

void PrintTo(const Layout& layout, std::ostream* out) { *out << layout.name; }

std::string kind_under_test() {
  const char* kind = std::getenv("SKEIN_TEST_DEVICE");
  return kind == nullptr ? "cpu" : kind;
}

StepSpec rank_spec(const Json& training, const DecoderConfig& model, const Layout& layout,
                   int64_t rank) {
  StepSpec spec = golden_spec(training, model);
  spec.layout.mesh = layout.mesh();
  spec.layout.rank = rank;
  spec.layout.reduction_width = layout.dp;
  spec.layout.zero = layout.zero;
  spec.micro_batches /= layout.dp;
  if (layout.offloads) spec.offload_activations = OffloadOptions{.least_bytes = 1};
  return spec;
}

// The rows of a step that a data rank reads.
Batch rank_batch(const Json& training, int64_t step, const ParallelLayout& layout) {
  const Batch all = golden_batch(training, step);
  Batch batch(0, all.sequences / layout.data_degree(), all.sequence_length);
  const int64_t size = batch.sequences * batch.sequence_length;
  const int64_t begin = layout.coordinate("dp") * size;
  const auto take = [&](const std::vector<int32_t>& from, std::vector<int32_t>& to) {
    to.assign(from.begin() + begin, from.begin() + begin + size);
  };
  take(all.tokens, batch.tokens);
  take(all.labels, batch.labels);
  take(all.positions, batch.positions);
  take(all.attention_starts, batch.attention_starts);
  batch.num_label_tokens = std::ssize(batch.labels) - std::ranges::count(batch.labels, kNoLabel);
  return batch;
}

using Losses = std::vector<double>;

Losses train_rank(const fs::path& folder, const Layout& layout, const WorldOptions& options) {
  const Json training = read_json(folder / "training.json");
  const ModelSource source(folder);
  const Backend& backend = find_backend(kind_under_test());
  const auto device = make_device({.kind = kind_under_test(), .threads = 1, .index = options.rank});
  const std::unique_ptr<Communicator> host = make_world(options);
  std::unique_ptr<Communicator> world;
  if (backend.make_world != nullptr) {
    world = backend.make_world(*host, {.stream = device->stream()});
  }
  const StepSpec spec = rank_spec(training, source.config(), layout, options.rank);
  const Communicators groups =
      split_by_axis(world ? *world : *host, spec.layout.mesh, spec.layout.reduction_width);
  const ProgramSet programs = plan_training(training_graphs(spec), spec, device->kernels());
  StepRunner runner(*device, programs, spec, &groups);
  source.load_parameters(source.config(), runner.executor());
  Losses losses;
  for (int64_t step = 0; step < kSteps; ++step) {
    const float rate = training.at("optimizer").at("learning_rate").get<float>();
    losses.push_back(runner.train(rank_batch(training, step, spec.layout), step + 1, rate).loss);
  }
  return losses;
}

Losses train(const fs::path& folder, const Layout& layout) {
  const int size = static_cast<int>(layout.mesh().num_ranks());
  setenv("CUDA_EMULATION_DEVICES", std::to_string(size).c_str(), 1);
  std::vector<Losses> losses(static_cast<size_t>(size));
  comm_test::run_rank_threads(size, [&](const WorldOptions& options) {
    losses[static_cast<size_t>(options.rank)] = train_rank(folder, layout, options);
  });
  unsetenv("CUDA_EMULATION_DEVICES");
  for (const Losses& of_rank : losses) EXPECT_EQ(of_rank, losses[0]) << "ranks disagree";
  return losses[0];
}

class ThreadRanks : public testing::TestWithParam<Layout> {};

TEST_P(ThreadRanks, TrainAsTransformersDoes) {
  unsetenv("SKEIN_GRAPHS");
  const fs::path folder = kGoldens / "llama/grouped_query_documents";
  const Losses found = train(folder, GetParam());
  ASSERT_EQ(std::ssize(found), kSteps);
  const Json expected = read_json(folder / "training.json").at("loss");
  for (size_t step = 0; step < found.size(); ++step) {
    const double loss = expected.at(step);
    EXPECT_NEAR(found[step], loss, 2e-6 * loss) << "step " << step + 1;
  }
  if (kind_under_test() == "cpu") return;
  setenv("SKEIN_GRAPHS", "off", 1);
  EXPECT_EQ(train(folder, GetParam()), found) << "op by op";
  unsetenv("SKEIN_GRAPHS");
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, ThreadRanks,
    testing::Values(Layout{"Tensor2", 1, 1, 1, 2, 1}, Layout{"Context2", 1, 1, 2, 1, 1},
                    Layout{"Pipeline2", 2, 1, 1, 1, 1}, Layout{"Data2", 1, 2, 1, 1, 1},
                    Layout{"Data2Zero3", 1, 2, 1, 1, 3}, Layout{"Data2Tensor2", 1, 2, 1, 2, 2},
                    Layout{"Data2Context2", 1, 2, 2, 1, 1},
                    Layout{"Data2Context2Zero3", 1, 2, 2, 1, 3},
                    Layout{"Pipeline2Tensor2", 2, 1, 1, 2, 1},
                    Layout{"Tensor2Offloads", 1, 1, 1, 2, 1, true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace skein
