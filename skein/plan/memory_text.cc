#include "skein/plan/memory_text.h"

#include "skein/base/text/units.h"
#include "skein/ops/simd/cpu_kind.h"

namespace skein {
namespace {

int64_t arena(const StagePlan& plan, Arena which) {
  return plan.arena_bytes[static_cast<size_t>(which)];
}

std::string line_of(std::string_view what, int64_t bytes, std::string_view note) {
  return fmt::format("  {:<12} {:>18L} B  {:>9}{}{}\n", what, bytes, format_bytes(bytes),
                     note.empty() ? "" : "  ", note);
}

std::string table(const StagePlan& stage, const std::string& kernels) {
  std::string text;
  const auto line = [&](std::string_view what, int64_t bytes, std::string_view note) {
    text += line_of(what, bytes, note);
  };
  const bool offloaded = stage.on_host[static_cast<size_t>(Arena::kOptimizer)];
  line("weights", arena(stage, Arena::kWeights), "");
  line("gradients", arena(stage, Arena::kGradients), "fp32 sums");
  line("optimizer", arena(stage, Arena::kOptimizer),
       offloaded ? "moments, master weights: in host memory" : "moments, master weights");
  line("activations", arena(stage, Arena::kActivations), "kept from forward to backward");
  if (arena(stage, Arena::kHostActivations) > 0) {
    line("", arena(stage, Arena::kHostActivations), "kept so in host memory");
  }
  line("workspace", arena(stage, Arena::kWorkspace),
       fmt::format("everything short-lived, scratch of {}", kernels));
  line("inputs", arena(stage, Arena::kInputs), "the micro-batch, scalars");
  if (arena(stage, Arena::kRounded) > 0) {
    line("rounded", arena(stage, Arena::kRounded),
         "weights of the layers in 8 bits, both ways round");
  }
  line("on device", stage.device_bytes(), "");
  line("snapshot", stage.snapshot_bytes, "host: what saving needs");
  line("loader", stage.loader_bytes, "host: batches made ahead");
  line("on host", stage.host_bytes(), "");
  line("total", stage.total_bytes(), "");
  line("process", stage.process_bytes,
       "host, estimated: program, threads, tokenizer, text of its lanes");
  return text;
}

std::string need_text(const MemoryFit& fit) {
  return fmt::format(
      "{} memory: {} {} of {}", fit.memory,
      fit.ranks > 1 ? fmt::format("{} ranks of a node need", fit.ranks) : "a rank needs",
      format_bytes(fit.needed_bytes), format_bytes(fit.available_bytes));
}

std::string fit_text(const MemoryFit& fit) {
  std::string verdict =
      fit.fits() ? fmt::format("fits, {} to spare", format_bytes(fit.spare_bytes()))
                 : fmt::format("does not fit, {} too much", format_bytes(-fit.spare_bytes()));
  if (fit.margin_bytes > 0) {
    verdict += fmt::format(" beside a margin of {}", format_bytes(fit.margin_bytes));
  }
  return fmt::format("  {}: {}\n    the limit is {}\n", need_text(fit), verdict, fit.limit);
}

// Of a device that no kernel here is for, those of this CPU stand in.
std::string kernels_text(const Plan& plan) {
  const bool stand_in = !plan.hardware.unified_memory && plan.kernels == cpu_kind();
  return stand_in ? fmt::format("this CPU's kernels ({}) in place of the device's", plan.kernels)
                  : fmt::format("kernels for {}", plan.kernels);
}

}  // namespace

std::string memory_table(const Plan& plan) {
  const StagePlan& largest = plan.largest();
  std::string text =
      fmt::format("Memory per rank{}\n{}", plan.stages.size() > 1 ? ", of the largest stage" : "",
                  table(largest, kernels_text(plan)));
  if (plan.copies == 0) return text;
  return text + line_of("copies", plan.copies * largest.snapshot_bytes,
                        plan.needs_copies
                            ? "host: copies of the state, for resuming after a failure"
                            : "host: of the state, left out where it is not free");
}

std::string memory_text(const Plan& plan) {
  std::string text = memory_table(plan);
  for (const MemoryFit& fit : plan.memory) text += fit_text(fit);
  return text;
}

std::string memory_refusal(const Plan& plan, const MemoryAdvice& advice) {
  const MemoryFit& fit = tightest(plan.memory);
  return fmt::format("not enough {}, {} too much; the limit is {}. Nothing was allocated. {}",
                     need_text(fit), format_bytes(-fit.spare_bytes()), fit.limit,
                     advice_line(advice));
}
}  // namespace skein
