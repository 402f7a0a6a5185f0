// Every way to lay a small model out over up to 8 workers, generated.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

namespace skein {

struct Layout {
  int64_t data = 1, tensor = 1, pipeline = 1, context = 1, virtual_stages = 1, zero = 1;
  bool sequence = true;
  bool tied = false;
  std::string recompute = "selective";

  int64_t num_workers() const { return data * tensor * pipeline * context; }
  // Sums of a product are split only by these: else the numbers are those of one worker, bit for
  // bit.
  bool keeps_the_bits() const { return tensor == 1 && context == 1; }

  std::string name() const {
    return fmt::format("dp{}_tp{}{}_pp{}{}_cp{}_zero{}_{}{}", data, tensor,
                       tensor > 1 && !sequence ? "_whole" : "", pipeline,
                       virtual_stages > 1 ? fmt::format("v{}", virtual_stages) : "", context, zero,
                       recompute, tied ? "_tied" : "");
  }

  std::vector<std::string> overrides() const {
    return {fmt::format("launch.workers={}", num_workers()),
            fmt::format("parallel.data={}", data),
            fmt::format("parallel.tensor={}", tensor),
            fmt::format("parallel.pipeline={}", pipeline),
            fmt::format("parallel.context={}", context),
            fmt::format("parallel.virtual_stages={}", virtual_stages),
            fmt::format("parallel.sequence={}", sequence),
            fmt::format("parallel.zero={}", zero),
            fmt::format("memory.recompute={}", recompute),
            fmt::format("model.tie_word_embeddings={}", tied)};
  }
};

// Degrees that divide the model's heads, its sequence and a reduction width of 8; `num_layers`
// bounds the chunks of a pipeline. What makes no difference (sequence without tensor, ZeRO without
// data parallelism) is listed once.
inline std::vector<Layout> all_layouts(int64_t num_layers, int64_t max_workers = 8) {
  std::vector<Layout> all;
  const auto add_variants = [&](const Layout& base) {
    for (const int64_t v : {1, 2, 3}) {
      if (base.pipeline * v > num_layers || (v > 1 && base.pipeline == 1)) continue;
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (base.data == 1 && zero != 1) continue;
        for (const bool sequence : {true, false}) {
          if (base.tensor == 1 && !sequence) continue;
          for (const char* recompute : {"none", "selective", "full"}) {
            for (const bool tied : {false, true}) {
              Layout layout = base;
              layout.virtual_stages = v;
              layout.zero = zero;
              layout.sequence = sequence;
              layout.recompute = recompute;
              layout.tied = tied;
              all.push_back(layout);
            }
          }
        }
      }
    }
  };
  for (const int64_t data : {1, 2, 4, 8}) {
    for (const int64_t tensor : {1, 2, 4, 8}) {
      for (int64_t pipeline = 1; pipeline <= max_workers; ++pipeline) {
        for (const int64_t context : {1, 2, 4, 8}) {
          const Layout base{
              .data = data, .tensor = tensor, .pipeline = pipeline, .context = context};
          if (base.num_workers() <= max_workers && pipeline <= num_layers) add_variants(base);
        }
      }
    }
  }
  return all;
}

}  // namespace skein
