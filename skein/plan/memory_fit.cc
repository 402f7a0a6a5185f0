#include "skein/plan/memory_fit.h"

#include <algorithm>
#include <cmath>

#include "skein/plan/plan.h"
#include "skein/plan/process_bytes.h"

namespace skein {
namespace {

// The bytes of a rank in host memory.
int64_t on_host(const Plan& plan, const StagePlan& stage, int64_t snapshot_bytes) {
  return stage.host_bytes() - stage.snapshot_bytes + snapshot_bytes + stage.process_bytes +
         (plan.needs_copies ? plan.copies * snapshot_bytes : 0) +
         (plan.hardware.unified_memory ? stage.device_bytes() : 0);
}

struct NodeNeed {
  int64_t bytes = 0;
  int64_t ranks = 0;
};

// The plan of the ranks that have as large a share of the batch as this one of the stage.
const StagePlan& plan_of_share(const Plan& plan, const StagePlan& stage, int64_t rank) {
  if (stage.smaller_shares.empty()) return stage;
  ParallelLayout layout = plan.layout;
  layout.rank = rank;
  for (const StagePlan& smaller : stage.smaller_shares) {
    if (smaller.virtual_ranks == layout.hosted_virtual_ranks()) return smaller;
  }
  return stage;
}

// The need of ranks [begin, end), which share a node.
NodeNeed need_of(const Plan& plan, int64_t begin, int64_t end) {
  const int64_t per_stage = plan.ranks() / static_cast<int64_t>(plan.stages.size());
  NodeNeed need;
  for (int64_t rank = begin; rank < end; ++rank) {
    const StagePlan& stage =
        plan_of_share(plan, plan.stages[static_cast<size_t>(rank / per_stage)], rank);
    const auto place = static_cast<size_t>(rank % per_stage);
    const auto& snapshots = stage.rank_snapshot_bytes;
    need.bytes +=
        on_host(plan, stage, place < snapshots.size() ? snapshots[place] : stage.snapshot_bytes);
    ++need.ranks;
  }
  return need;
}

// Ranks fill one node after another, and the first ranks of a stage hold the most of it, so the
// fullest node is one in which a stage begins.
NodeNeed fullest_node(const Plan& plan) {
  const auto num_stages = static_cast<int64_t>(plan.stages.size());
  const int64_t a_node = std::max<int64_t>(1, plan.hardware.devices_per_node);
  NodeNeed most;
  int64_t last_node = -1;
  for (int64_t stage = 0; stage < num_stages; ++stage) {
    const int64_t node = stage * (plan.ranks() / num_stages) / a_node;
    if (std::exchange(last_node, node) == node) continue;
    const NodeNeed need = need_of(plan, node * a_node, std::min((node + 1) * a_node, plan.ranks()));
    if (need.bytes > most.bytes) most = need;
  }
  return most;
}

MemoryFit fit_of(const Plan& plan, const MemoryLimit& limit) {
  MemoryFit fit;
  fit.memory = plan.hardware.unified_memory ? "device and host" : "host";
  fit.limit = limit.by;
  fit.available_bytes = limit.free_bytes;
  if (limit.id.empty()) {
    for (const StagePlan& stage : plan.stages) {
      const int64_t bytes = on_host(plan, stage, stage.snapshot_bytes) +
                            (limit.of_addresses ? process_address_bytes(plan.threads) : 0);
      fit.needed_bytes = std::max(fit.needed_bytes, bytes);
    }
  } else {
    const NodeNeed need = fullest_node(plan);
    fit.needed_bytes = need.bytes;
    fit.ranks = need.ranks;
  }
  return fit;
}

bool has_less_to_spare(const MemoryFit& a, const MemoryFit& b) {
  return a.spare_bytes() < b.spare_bytes();
}

}  // namespace

int64_t margin_of(int64_t bytes, double margin) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) * margin));
}

std::vector<MemoryLimit> memory_limits(const Hardware& hardware) {
  const int64_t bytes = hardware.unified_memory ? hardware.memory_bytes * hardware.devices_per_node
                                                : hardware.host_memory_bytes;
  if (bytes == 0) return {};
  return {{"node", fmt::format("a node of {}", hardware.name), bytes, bytes}};
}

std::vector<MemoryFit> memory_fits(const Plan& plan, std::span<const MemoryLimit> limits) {
  std::vector<MemoryFit> fits, of_host;
  if (!plan.hardware.unified_memory && plan.hardware.memory_bytes > 0) {
    fits.push_back({"device", fmt::format("a device of {}", plan.hardware.name), 1,
                    plan.fullest().device_bytes(), plan.hardware.memory_bytes});
  }
  for (const MemoryLimit& limit : limits) of_host.push_back(fit_of(plan, limit));
  for (auto* of : {&fits, &of_host}) {
    for (MemoryFit& fit : *of)
      fit.margin_bytes = margin_of(fit.available_bytes, plan.memory_margin);
  }
  if (!of_host.empty()) fits.push_back(tightest(of_host));
  return fits;
}

bool all_fit(std::span<const MemoryFit> fits) {
  return std::all_of(fits.begin(), fits.end(), [](const MemoryFit& fit) { return fit.fits(); });
}

const MemoryFit& tightest(std::span<const MemoryFit> fits) {
  return *std::min_element(fits.begin(), fits.end(), has_less_to_spare);
}

}  // namespace skein
