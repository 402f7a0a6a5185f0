// Every way to lay a small model out over up to 8 workers, generated; and samples of them.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace skein {

struct RunLayout {
  int64_t data = 1, tensor = 1, pipeline = 1, context = 1, virtual_stages = 1, zero = 1;
  bool sequence = true;
  bool tied = false;
  std::string recompute = "selective";
  int64_t layers = 5, kv_heads = 4;  // of the model

  int64_t num_workers() const { return data * tensor * pipeline * context; }
  int64_t num_chunks() const { return pipeline * virtual_stages; }
  // Sums of a product are split only by these: else the numbers are those of one worker, bit for
  // bit.
  bool keeps_the_bits() const { return tensor == 1 && context == 1; }

  std::string name() const {
    return fmt::format("dp{}_tp{}{}_pp{}{}_cp{}_zero{}_{}{}_{}layers{}", data, tensor,
                       tensor > 1 && !sequence ? "_whole" : "", pipeline,
                       virtual_stages > 1 ? fmt::format("v{}", virtual_stages) : "", context, zero,
                       recompute, tied ? "_tied" : "", layers, kv_heads != 4 ? "_2kv" : "");
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
            fmt::format("model.num_hidden_layers={}", layers),
            fmt::format("model.num_key_value_heads={}", kv_heads),
            fmt::format("model.tie_word_embeddings={}", tied)};
  }

  // The value of each dimension.
  std::set<std::string> values() const {
    return {fmt::format("data {}", data),
            fmt::format("tensor {}", tensor),
            fmt::format("pipeline {}", pipeline),
            fmt::format("context {}", context),
            fmt::format("virtual {}", virtual_stages),
            fmt::format("zero {}", zero),
            fmt::format("sequence {}", sequence),
            fmt::format("recompute {}", recompute),
            fmt::format("tied {}", tied),
            fmt::format("layers {}", layers),
            fmt::format("key-value heads {}", kv_heads)};
  }

  // What may go wrong together with something else, as pairs: degrees count only as "split or not",
  // and what is off breaks nothing.
  std::set<std::string> pairs() const {
    std::vector<std::string> on = {fmt::format("zero {}", zero), "recompute " + recompute};
    const auto add = [&](bool is_on, const char* name) {
      if (is_on) on.emplace_back(name);
    };
    add(data > 1, "data");
    add(tensor > 1, "tensor");
    add(tensor > 1 && !sequence, "whole rows");
    add(tensor > kv_heads, "replicated heads");
    add(pipeline > 1, "pipeline");
    add(virtual_stages > 1, "virtual stages");
    add(context > 1, "context");
    add(tied, "tied");
    std::set<std::string> result;
    for (size_t i = 0; i < on.size(); ++i) {
      for (size_t j = i + 1; j < on.size(); ++j) result.insert(on[i] + " with " + on[j]);
    }
    return result;
  }

  // Roughly what a run of 20 steps takes of a core: starting processes, and passing messages.
  double core_seconds() const {
    const double layer_passes = 8.0 / static_cast<double>(data * pipeline);
    const double messages = layer_passes * static_cast<double>(num_workers()) *
                            static_cast<double>(tensor - 1 + 2 * (context - 1));
    return 0.7 * static_cast<double>(num_workers()) + 0.04 * messages;
  }
};

// Degrees that divide the model's heads, its sequence and a reduction width of 8; chunks of a
// pipeline have a layer at least. What makes no difference (sequence without tensor, ZeRO without
// data parallelism) is listed once.
inline std::vector<RunLayout> layouts_of(int64_t num_layers, int64_t max_workers) {
  std::vector<RunLayout> all;
  const auto add_variants = [&](const RunLayout& base) {
    for (int64_t v = 1; base.pipeline * v <= num_layers && (v == 1 || base.pipeline > 1); ++v) {
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (base.data == 1 && zero != 1) continue;
        for (const bool sequence : {true, false}) {
          if (base.tensor == 1 && !sequence) continue;
          for (const char* recompute : {"none", "selective", "full"}) {
            for (const bool tied : {false, true}) {
              RunLayout layout = base;
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
      for (int64_t pipeline = 1; pipeline <= std::min(max_workers, num_layers); ++pipeline) {
        for (const int64_t context : {1, 2, 4, 8}) {
          RunLayout base;
          base.data = data;
          base.tensor = tensor;
          base.pipeline = pipeline;
          base.context = context;
          base.layers = num_layers;
          if (base.num_workers() <= max_workers) add_variants(base);
        }
      }
    }
  }
  return all;
}

// All layouts of a model of 5 layers; those of one of 7 layers that need more than 5; and those of
// one with 2 key-value heads that replicate them and split something else, too.
inline std::vector<RunLayout> all_layouts(int64_t max_workers = 8) {
  std::vector<RunLayout> all = layouts_of(5, max_workers);
  for (const RunLayout& layout : layouts_of(7, max_workers)) {
    if (layout.num_chunks() > 5) all.push_back(layout);
  }
  for (RunLayout layout : layouts_of(5, max_workers)) {
    layout.kv_heads = 2;
    if (layout.tensor == 4 && layout.num_workers() > 4) all.push_back(layout);
  }
  return all;
}

enum class Cover { kValues, kPairs };

// Few and cheap layouts among `from` that together have every value of every dimension that occurs
// there, and every pair too if so asked. Greedy; `seed` decides among equals.
inline std::vector<RunLayout> sample(std::vector<RunLayout> from, Cover cover, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(from.begin(), from.end(), random);
  const auto features = [&](const RunLayout& layout) {
    std::set<std::string> result = layout.values();
    if (cover == Cover::kPairs) result.merge(layout.pairs());
    return result;
  };
  std::set<std::string> missing;
  for (const RunLayout& layout : from) missing.merge(features(layout));
  std::vector<RunLayout> chosen;
  while (!missing.empty()) {
    const auto gain = [&](const RunLayout& layout) {
      const auto all = features(layout);
      const auto news = std::count_if(all.begin(), all.end(),
                                      [&](const std::string& f) { return missing.contains(f); });
      return static_cast<double>(news) / std::sqrt(layout.core_seconds());
    };
    const RunLayout best = *std::max_element(
        from.begin(), from.end(),
        [&](const RunLayout& a, const RunLayout& b) { return gain(a) < gain(b); });
    for (const std::string& feature : features(best)) missing.erase(feature);
    chosen.push_back(best);
  }
  return chosen;
}

}  // namespace skein
