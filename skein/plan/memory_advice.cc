#include "skein/plan/memory_advice.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <optional>

#include "skein/base/error.h"
#include "skein/base/text/units.h"
#include "skein/plan/sketch.h"

namespace skein {
namespace {

// A change of a request. `apply` returns the settings that it changed, none where it does not
// apply.
struct Option {
  std::function<std::vector<std::string>(PlanRequest&)> apply;
  std::string price;
};

// Sets `value`; returns the setting, or nothing where it already has that value.
template <typename Value, typename Wanted>
std::vector<std::string> set(Value& value, const Wanted& wanted, const char* key) {
  if (value == Value(wanted)) return {};
  value = wanted;
  return {fmt::format("{}={}", key, wanted)};
}

int64_t data_degree(const PlanRequest& request) {
  const ParallelConfig& p = request.config.parallel;
  return request.ranks / (p.pipeline * p.context * p.tensor);
}

std::vector<std::string> one_data_rank(PlanRequest& request) {
  const int64_t data = data_degree(request);
  if (data == 1) return {};
  request.ranks /= data;
  request.hardware.devices_per_node = std::min(request.hardware.devices_per_node, request.ranks);
  if (request.config.parallel.data > 0) request.config.parallel.data = 1;
  request.config.launch.workers = request.ranks;
  return {fmt::format("launch.workers={}", request.ranks)};
}

std::vector<std::string> split_instead(PlanRequest& request) {
  const int64_t data = data_degree(request);
  if (data == 1) return {};
  ParallelConfig& parallel = request.config.parallel;
  if (parallel.data > 0) parallel.data = 1;
  parallel.tensor *= data;
  return {fmt::format("parallel.tensor={}", parallel.tensor)};
}

// Ordered from options that cost only time to those that change the numbers.
std::vector<Option> options(const PlanRequest& request) {
  const auto config = [](auto apply) {
    return [apply](PlanRequest& changed) { return apply(changed.config); };
  };
  std::vector<Option> list;
  list.push_back({config([](Config& c) {
                    if (c.parallel.zero > 0) return std::vector<std::string>{};
                    return set(c.parallel.zero, 1, "parallel.zero");
                  }),
                  "the same losses"});
  list.push_back({config([](Config& c) { return set(c.parallel.pairs, false, "parallel.pairs"); }),
                  "what layers wait for is exposed; the same losses"});
  list.push_back(
      {config([](Config& c) { return set(c.memory.recompute, "full", "memory.recompute"); }),
       "a third more work, the same losses"});
  if (request.config.precision.mode == "fp8") {
    list.push_back({config([](Config& c) {
                      return set(c.memory.keep_fp8_weights, false, "memory.keep_fp8_weights");
                    }),
                    "every product rounds weights again; the same losses"});
  }
  if (!request.hardware.unified_memory) {
    list.push_back({config([](Config& c) {
                      return set(c.memory.offload_activations, true, "memory.offload_activations");
                    }),
                    "the link to the host has to keep up; the same losses"});
    list.push_back({config([](Config& c) {
                      return set(c.memory.offload_optimizer, true, "memory.offload_optimizer");
                    }),
                    "slower updates, the same losses"});
  }
  list.push_back(
      {config([](Config& c) { return set(c.batch.micro_sequences, 1, "batch.micro_sequences"); }),
       "smaller products"});
  if (data_degree(request) * request.config.parallel.context > 1) {
    list.push_back({config([](Config& c) { return set(c.parallel.zero, 3, "parallel.zero"); }),
                    "weights travel in every pass; the same losses"});
  }
  if (data_degree(request) > 1) {
    if (request.hardware.unified_memory) {
      list.push_back({one_data_rank, "fewer copies, as many cores; the same losses"});
    } else {
      list.push_back({split_instead, "losses agree to rounding"});
    }
  }
  list.push_back(
      {config([](Config& c) { return set(c.precision.moments, "bf16", "precision.moments"); }),
       "other losses"});
  list.push_back({config([](Config& c) {
                    if (c.precision.mode == "bf16" || c.precision.mode == "fp8")
                      return std::vector<std::string>{};
                    return set(c.precision.mode, "bf16-sr", "precision.mode");
                  }),
                  "other losses"});
  return list;
}

class Adviser {
 public:
  Adviser(const PlanRequest& request, const Plan& plan)
      : request_(request), short_(tightest(plan.memory).memory) {}

  MemoryAdvice run() {
    MemoryAdvice advice;
    const std::vector<Option> all = options(request_);
    for (const Option& option : all) {
      PlanRequest changed = request_;
      if (const auto change = tried(changed, option.apply(changed), option.price);
          change && change->spare_bytes >= 0) {
        advice.fits.push_back(*change);
      }
    }
    if (advice.fits.empty()) try_together(all, advice);
    try_more_nodes(advice);
    return advice;
  }

 private:
  using Proposal = MemoryAdvice::Proposal;

  // nullopt where there is nothing to change, or the layout is not valid.
  std::optional<Proposal> tried(const PlanRequest& changed, std::vector<std::string> settings,
                                const std::string& price) const {
    if (settings.empty()) return std::nullopt;
    try {
      SketchCache cache;
      Plan plan = sketch_plan(changed, cache);
      if (all_fit(plan.memory)) plan = make_plan(changed);
      return change(plan, std::move(settings), price);
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInternal) throw;
      return std::nullopt;
    }
  }

  Proposal change(const Plan& plan, std::vector<std::string> settings,
                  const std::string& price) const {
    Proposal result;
    result.settings = std::move(settings);
    result.price = price;
    const auto fit = std::find_if(plan.memory.begin(), plan.memory.end(),
                                  [&](const MemoryFit& f) { return f.memory == short_; });
    result.needed_bytes = fit->needed_bytes;
    result.ranks = fit->ranks;
    result.spare_bytes = tightest(plan.memory).spare_bytes();
    return result;
  }

  // Applies the options one after another and keeps each that makes the plan smaller.
  void try_together(const std::vector<Option>& all, MemoryAdvice& advice) const {
    PlanRequest best = request_;
    std::vector<std::string> settings;
    std::optional<Proposal> smallest;
    for (const Option& option : all) {
      PlanRequest next = best;
      const std::vector<std::string> more = option.apply(next);
      std::vector<std::string> together = settings;
      together.insert(together.end(), more.begin(), more.end());
      const auto change = more.empty() ? std::nullopt : tried(next, together, option.price);
      if (!change || (smallest && change->spare_bytes <= smallest->spare_bytes)) continue;
      best = next;
      settings = together;
      smallest = change;
      if (change->spare_bytes >= 0) break;
    }
    if (!smallest) return;
    if (smallest->spare_bytes >= 0) {
      advice.fits.push_back(*smallest);
      return;
    }
    advice.smallest = change(make_plan(best), settings, smallest->price);
  }

  // Doubles the ranks until the run fits: ZeRO 3 divides everything but activations by them.
  void try_more_nodes(MemoryAdvice& advice) const {
    constexpr int64_t kMostNodes = 64;
    for (int64_t times = 2; times <= kMostNodes; times *= 2) {
      PlanRequest more = request_;
      more.ranks = request_.ranks * times;
      ParallelConfig& parallel = more.config.parallel;
      if (parallel.data > 0) parallel.data *= times;
      parallel.zero = 3;
      const auto change = tried(
          more, {fmt::format("--ranks {}", more.ranks), "parallel.zero=3"},
          fmt::format("{} times the {}; the same losses", times,
                      request_.ranks < request_.hardware.devices_per_node ? "ranks" : "machines"));
      if (!change) return;  // the batch cannot be divided among so many ranks
      if (change->spare_bytes < 0) continue;
      advice.more_nodes.push_back(*change);
      return;
    }
  }

  const PlanRequest& request_;
  std::string short_;
};

std::string line_of(const MemoryAdvice::Proposal& change, int64_t needed_bytes) {
  return fmt::format("  {}: {}{}, {}; fits with {} to spare ({})\n",
                     fmt::join(change.settings, ", "), format_bytes(change.needed_bytes),
                     change.ranks > 1 ? " a node" : "",
                     change.needed_bytes < needed_bytes
                         ? fmt::format("{} less", format_bytes(needed_bytes - change.needed_bytes))
                         : "as much",
                     format_bytes(change.spare_bytes), change.price);
}

OrderedJson to_json(const MemoryAdvice::Proposal& change) {
  return {{"settings", change.settings},
          {"needed_bytes", change.needed_bytes},
          {"fits", change.spare_bytes >= 0},
          {"price", change.price}};
}

}  // namespace

MemoryAdvice advise(const PlanRequest& request, const Plan& plan) {
  return Adviser(request, plan).run();
}

std::string advice_text(const MemoryAdvice& advice, const Plan& plan) {
  const int64_t needed = tightest(plan.memory).needed_bytes;
  std::string text;
  if (!advice.fits.empty()) text += "Changes that make it fit\n";
  for (const auto& change : advice.fits) text += line_of(change, needed);
  if (advice.fits.empty() && !advice.smallest.settings.empty()) {
    text += fmt::format("No setting makes it fit: the least is {}, {} too much, with {}\n",
                        format_bytes(advice.smallest.needed_bytes),
                        format_bytes(-advice.smallest.spare_bytes),
                        fmt::join(advice.smallest.settings, ", "));
  } else if (advice.fits.empty()) {
    text += "No setting makes it fit.\n";
  }
  if (advice.fits.empty() && advice.more_nodes.empty()) {
    text += "A smaller model would fit, or more memory.\n";
  }
  if (!advice.more_nodes.empty()) {
    text += "With more ranks\n" + line_of(advice.more_nodes.front(), needed);
  }
  return text;
}

std::string advice_line(const MemoryAdvice& advice) {
  std::vector<std::string> ways;
  for (const auto* list : {&advice.fits, &advice.more_nodes}) {
    for (const auto& change : *list) {
      ways.push_back(fmt::format("{} ({})", fmt::join(change.settings, " with "),
                                 format_bytes(change.needed_bytes)));
    }
  }
  std::string least = "No setting makes it fit";
  if (!advice.smallest.settings.empty()) {
    least += fmt::format(": the least is {}, with {}", format_bytes(advice.smallest.needed_bytes),
                         fmt::join(advice.smallest.settings, " and "));
  }
  if (ways.empty()) return least + "; a smaller model would, or more memory";
  return fmt::format("{}It would fit with {}", advice.fits.empty() ? least + ". " : "",
                     fmt::join(ways, ", or "));
}

OrderedJson advice_to_json(const MemoryAdvice& advice) {
  OrderedJson json = OrderedJson::array();
  for (const auto* list : {&advice.fits, &advice.more_nodes}) {
    for (const auto& change : *list) json.push_back(to_json(change));
  }
  if (!advice.smallest.settings.empty()) json.push_back(to_json(advice.smallest));
  return json;
}

}  // namespace skein
