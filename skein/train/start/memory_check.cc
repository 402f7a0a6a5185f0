#include "skein/train/start/memory_check.h"

#include <omp.h>

#include <algorithm>
#include <cstdlib>
#include <map>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/base/text/units.h"
#include "skein/plan/memory_text.h"
#include "skein/plan/process_bytes.h"
#include "skein/plan/this_machine.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

constexpr size_t kMostLimits = 15;  // of a rank, the tightest ones; cgroups may be nested deeper
constexpr size_t kRecordSize = 1 + 4 * kMostLimits;

// What this rank will hold.
struct RankNeed {
  int64_t device_bytes = 0;  // in the device's own memory
  int64_t host_bytes = 0;
  int64_t process_bytes = 0;
};

RankNeed need_of(const Device& device, const Config& config, const StepSpec& spec,
                 const ProgramSet& programs, int64_t snapshot_bytes) {
  const bool has_own = device.own_memory().has_value();
  RankNeed need;
  for (size_t i = 0; i < programs.arena_bytes.size(); ++i) {
    const bool on_host = programs.on_host[i] || !has_own;
    (on_host ? need.host_bytes : need.device_bytes) += programs.arena_bytes[i];
  }
  need.host_bytes += snapshot_bytes + loader_bytes(spec);
  need.process_bytes = process_bytes(config, spec, omp_get_max_threads(), has_own);
  return need;
}

// Lists the device's own memory first, where it has some. `limits` receives the same limits with
// their names, in the same order.
std::vector<RankLimit> limits_of_rank(const Device& device, const RankNeed& need,
                                      std::vector<MemoryLimit>& limits) {
  const HostMemory host = read_host_memory();
  limits = host.limits;
  std::sort(limits.begin(), limits.end(),
            [](const MemoryLimit& a, const MemoryLimit& b) { return a.free_bytes < b.free_bytes; });
  const auto own = device.own_memory();
  if (own) {
    limits.insert(limits.begin(),
                  {"", "what the GPU has left", own->total_bytes, own->free_bytes, false});
  }
  limits.resize(std::min(limits.size(), kMostLimits));
  std::vector<RankLimit> result;
  for (const MemoryLimit& limit : limits) {
    RankLimit of_rank;
    of_rank.free_bytes = limit.free_bytes;
    if (own && result.empty()) {
      of_rank.needed_bytes = need.device_bytes;
    } else if (limit.of_addresses) {
      const int64_t program = need.process_bytes + process_address_bytes(omp_get_max_threads());
      const int64_t mapped = limit.total_bytes - limit.free_bytes;  // has most of `program`
      of_rank.needed_bytes = need.host_bytes + std::max<int64_t>(0, program - mapped);
    } else {
      of_rank.id = limit.id.empty() ? 0 : hash_name(limit.id);
      of_rank.needed_bytes = need.host_bytes + need.process_bytes;
      of_rank.held_bytes = std::min(host.own_bytes, need.process_bytes);
    }
    result.push_back(of_rank);
  }
  return result;
}

std::vector<std::vector<RankLimit>> limits_of_all(Communicator& world,
                                                  std::span<const RankLimit> mine) {
  std::vector<int64_t> record = {static_cast<int64_t>(mine.size())};
  for (const RankLimit& limit : mine) {
    record.insert(record.end(), {static_cast<int64_t>(limit.id), limit.needed_bytes,
                                 limit.held_bytes, limit.free_bytes});
  }
  record.resize(kRecordSize);
  const std::vector<int64_t> all = values_of_all(world, record);
  std::vector<std::vector<RankLimit>> limits(static_cast<size_t>(world.size()));
  for (size_t rank = 0; rank < limits.size(); ++rank) {
    const int64_t* values = all.data() + rank * kRecordSize;
    for (int64_t i = 0; i < values[0]; ++i) {
      const int64_t* of = values + 1 + 4 * i;
      limits[rank].push_back({static_cast<uint64_t>(of[0]), of[1], of[2], of[3]});
    }
  }
  return limits;
}

// The text of the error, written by the rank that is under the limit.
std::string refusal(const Config& config, const StepSpec& spec, int64_t ranks, bool is_device,
                    const LimitVerdict& verdict, const MemoryLimit& limit) {
  PlanRequest request = memory_request(config, spec.model, ranks);
  request.hardware.devices_per_node = verdict.ranks;
  MemoryLimit left = limit;
  left.free_bytes = verdict.available_bytes;
  request.limits = {left};
  if (is_device) {
    request.hardware.memory_bytes = std::max<int64_t>(1, left.free_bytes);
    request.limits.clear();
  }
  Plan plan = make_plan(request);
  MemoryFit& fit = plan.memory.front();  // the ranks' own sums replace the plan's estimate
  fit.limit = limit.by;
  fit.ranks = verdict.ranks;
  fit.needed_bytes = verdict.needed_bytes;
  const MemoryAdvice advice = advise(request, plan);
  return memory_refusal(plan, advice) + "\n" + memory_table(plan);
}

// The first line becomes the error. The table after it is printed by one rank only.
[[noreturn]] void refuse(const std::string& text, bool shows_table) {
  const size_t end = text.find('\n');
  if (shows_table && end != text.npos) fmt::print(stderr, "{}", text.substr(end + 1));
  fail(ErrorCode::kNoSpace, "{}", text.substr(0, end));
}

}  // namespace

std::optional<LimitVerdict> exceeded_limit(std::span<const std::vector<RankLimit>> limits) {
  std::map<uint64_t, LimitVerdict> shared;
  std::optional<LimitVerdict> worst;
  const auto consider = [&](const LimitVerdict& verdict) {
    const int64_t excess = verdict.needed_bytes - verdict.available_bytes;
    if (excess > 0 && (!worst || excess > worst->needed_bytes - worst->available_bytes))
      worst = verdict;
  };
  std::map<uint64_t, int64_t> held;
  for (size_t rank = 0; rank < limits.size(); ++rank) {
    for (size_t i = 0; i < limits[rank].size(); ++i) {
      const RankLimit& limit = limits[rank][i];
      const LimitVerdict alone = {static_cast<int>(rank), i, 1, limit.needed_bytes,
                                  limit.free_bytes};
      if (limit.id == 0) {
        consider(alone);
        continue;
      }
      held[limit.id] += limit.held_bytes;
      const auto [found, is_new] = shared.emplace(limit.id, alone);
      if (is_new) continue;
      ++found->second.ranks;
      found->second.needed_bytes += limit.needed_bytes;
      found->second.available_bytes = std::min(found->second.available_bytes, limit.free_bytes);
    }
  }
  for (auto& [id, verdict] : shared) {
    verdict.available_bytes += held[id];
    consider(verdict);
  }
  return worst;
}

void check_memory(Communicator& world, const Device& device, const Config& config,
                  const StepSpec& spec, const ProgramSet& programs, int64_t snapshot_bytes) {
  // Other ranks may still hold memory for measuring the ceiling or reading a checkpoint, which
  // would count as not free.
  wait_for_all(world, "every rank knows what it needs");
  const RankNeed need = need_of(device, config, spec, programs, snapshot_bytes);
  std::vector<MemoryLimit> names;
  const std::vector<RankLimit> mine = limits_of_rank(device, need, names);
  const auto verdict = exceeded_limit(limits_of_all(world, mine));
  if (!verdict) return;
  std::string text;
  if (world.rank() == verdict->rank) {
    const bool is_device = device.own_memory().has_value() && verdict->index == 0;
    text = refusal(config, spec, world.size(), is_device, *verdict, names[verdict->index]);
  }
  refuse(text_of_rank(world, verdict->rank, text), world.rank() == 0);
}

std::optional<std::string> lacks_memory_for(Communicator& world, const Device& device,
                                            const Config& config, const StepSpec& spec,
                                            const ProgramSet& programs, int64_t snapshot_bytes,
                                            int64_t more_bytes) {
  RankNeed need = need_of(device, config, spec, programs, snapshot_bytes);
  need.host_bytes += more_bytes;
  std::vector<MemoryLimit> names;
  const std::vector<RankLimit> mine = limits_of_rank(device, need, names);
  const auto verdict = exceeded_limit(limits_of_all(world, mine));
  if (!verdict) return std::nullopt;
  std::string text;
  if (world.rank() == verdict->rank) {
    text = fmt::format("{} more is needed of {}",
                       format_bytes(verdict->needed_bytes - verdict->available_bytes),
                       names[verdict->index].by);
  }
  return text_of_rank(world, verdict->rank, text);
}

void check_memory_of_workers(const Config& config, const DecoderConfig& model, int64_t workers) {
  const int former = omp_get_max_threads();
  // Plans with the threads that a worker will have, since the scratch memory of kernels depends on
  // them.
  const bool told = config.device.threads == 0 && std::getenv("OMP_NUM_THREADS") != nullptr;
  if (!told) omp_set_num_threads(static_cast<int>(share_cores(config, workers).threads));
  const PlanRequest request = memory_request(config, model, workers);
  const Plan plan = make_plan(request);
  if (all_fit(plan.memory)) return omp_set_num_threads(former);
  const MemoryAdvice advice = advise(request, plan);
  refuse(memory_refusal(plan, advice) + "\n" + memory_table(plan), true);
}

}  // namespace skein
