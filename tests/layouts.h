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
  // The global batch, and how much of it is a micro-batch.
  int64_t sequences = 8, micro_sequences = 1;
  bool biases = false;
  bool offload = false;  // all that can be
  bool qwen3 = false;    // else a Llama

  int64_t num_workers() const { return data * tensor * pipeline * context; }
  int64_t num_chunks() const { return pipeline * virtual_stages; }
  // A data rank has one micro-batch a step: gradients are scattered while backward runs (ZeRO 2,
  // 3). Counted where the batch was made that small.
  bool has_one_micro_batch() const {
    return data * context > 1 && sequences < 8 && sequences == data * micro_sequences;
  }
  // Sums of a product are split only by these: else the numbers are those of one worker, bit for
  // bit.
  bool keeps_the_bits() const { return tensor == 1 && context == 1; }

  std::string name() const {
    std::string name =
        fmt::format("dp{}_tp{}{}_pp{}{}_cp{}_zero{}_{}{}_{}layers{}", data, tensor,
                    tensor > 1 && !sequence ? "_whole" : "", pipeline,
                    virtual_stages > 1 ? fmt::format("v{}", virtual_stages) : "", context, zero,
                    recompute, tied ? "_tied" : "", layers, kv_heads != 4 ? "_2kv" : "");
    if (sequences != 8) name += fmt::format("_batch{}", sequences);
    if (micro_sequences != 1) name += fmt::format("_micro{}", micro_sequences);
    return name + (biases ? "_biases" : "") + (offload ? "_offload" : "") + (qwen3 ? "_qwen3" : "");
  }

  std::vector<std::string> overrides() const {
    std::vector<std::string> all = common_overrides();
    if (qwen3) {
      all.insert(all.end(), {"model.model_type=qwen3", "model.head_dim=24"});
    } else {
      all.push_back(fmt::format("model.mlp_bias={}", biases));
    }
    return all;
  }
  std::vector<std::string> common_overrides() const {
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
            fmt::format("model.tie_word_embeddings={}", tied),
            fmt::format("model.attention_bias={}", biases),
            fmt::format("batch.global_sequences={}", sequences),
            fmt::format("batch.micro_sequences={}", micro_sequences),
            fmt::format("parallel.reduction_width={}", sequences / micro_sequences),
            fmt::format("memory.offload_optimizer={}", offload),
            fmt::format("memory.offload_activations={}", offload),
            fmt::format("memory.offload_min_bytes={}", offload ? 1 : 1 << 20)};
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
    add(biases, "biases");
    add(offload, "offload");
    add(qwen3, "qwen3");
    add(micro_sequences > 1, "micro-batches of several sequences");
    add(has_one_micro_batch() && zero >= 2, zero == 2 ? "early ZeRO 2" : "early ZeRO 3");
    std::set<std::string> result;
    for (size_t i = 0; i < on.size(); ++i) {
      for (size_t j = i + 1; j < on.size(); ++j) result.insert(on[i] + " with " + on[j]);
    }
    return result;
  }

  // Roughly what a run takes of a core: starting processes, and passing messages.
  double core_seconds() const {
    const double layer_passes =
        static_cast<double>(sequences / micro_sequences) / static_cast<double>(data * pipeline);
    const double messages = layer_passes * static_cast<double>(num_workers()) *
                            static_cast<double>(tensor - 1 + 2 * (context - 1));
    return 0.7 * static_cast<double>(num_workers()) + 0.01 * messages;
  }
};

// Degrees that divide the model's heads, its sequence and a reduction width of 8; chunks of a
// pipeline have a layer at least. What makes no difference (sequence without tensor, ZeRO without
// data or context parallelism) is listed once.
inline std::vector<RunLayout> layouts_of(int64_t num_layers, int64_t max_workers) {
  std::vector<RunLayout> all;
  const auto add_variants = [&](const RunLayout& base) {
    for (int64_t v = 1; base.pipeline * v <= num_layers && (v == 1 || base.pipeline > 1); ++v) {
      for (const int64_t zero : {0, 1, 2, 3}) {
        if (base.data * base.context == 1 && zero != 1) continue;
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

// Every kind of parallelism by two, on up to 4 workers, of a model of 3 layers.
inline std::vector<RunLayout> small_layouts() {
  std::vector<RunLayout> all = layouts_of(3, 4);
  std::erase_if(all, [](const RunLayout& layout) {
    return layout.virtual_stages > 1 || !layout.sequence || layout.tied ||
           std::max({layout.data, layout.tensor, layout.pipeline, layout.context}) > 2;
  });
  return all;
}
// The same with what may be switched on beside them: one micro-batch a step on every data or
// context rank, biases, offloading, micro-batches of several sequences, another family.
inline std::vector<RunLayout> layouts_with_options() {
  std::vector<RunLayout> all;
  for (const RunLayout& base : small_layouts()) {
    for (int options = 1; options < 32; ++options) {
      RunLayout layout = base;
      layout.biases = (options & 1) != 0;
      layout.offload = (options & 2) != 0;
      layout.qwen3 = (options & 16) != 0;
      if ((options & 4) != 0) layout.micro_sequences = 2;
      if ((options & 8) != 0) layout.sequences = layout.data * layout.micro_sequences;
      const bool is_early = layout.has_one_micro_batch() && layout.zero >= 2;
      if ((options & 8) != 0 && !is_early) continue;
      all.push_back(layout);
    }
  }
  return all;
}

enum class Cover { kValues, kPairs };

// Few and cheap layouts among `from` that together have every value of every dimension that occurs
// there, and every pair too if so asked. Greedy; `seed` decides among equals.
inline std::vector<RunLayout> sample(std::vector<RunLayout> from, Cover cover, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::shuffle(from.begin(), from.end(), random);
  std::vector<std::set<std::string>> features;
  std::set<std::string> missing;
  for (const RunLayout& layout : from) {
    features.push_back(layout.values());
    if (cover == Cover::kPairs) features.back().merge(layout.pairs());
    missing.insert(features.back().begin(), features.back().end());
  }
  std::vector<RunLayout> chosen;
  while (!missing.empty()) {
    double most = -1;
    size_t best = 0;
    for (size_t i = 0; i < from.size(); ++i) {
      const auto news = std::count_if(features[i].begin(), features[i].end(),
                                      [&](const std::string& f) { return missing.contains(f); });
      const double gain = static_cast<double>(news) / std::sqrt(from[i].core_seconds());
      if (gain > most) most = gain, best = i;
    }
    for (const std::string& feature : features[best]) missing.erase(feature);
    chosen.push_back(from[best]);
  }
  return chosen;
}

}  // namespace skein
