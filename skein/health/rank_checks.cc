#include "skein/health/rank_checks.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/units.h"
#include "skein/compile/step_programs.h"
#include "skein/health/collective_check.h"
#include "skein/health/memory_pattern.h"
#include "skein/health/product_check.h"
#include "skein/health/storage_check.h"
#include "skein/objects/url.h"
#include "skein/plan/memory_text.h"
#include "skein/plan/plan.h"
#include "skein/record/files/events.h"
#include "skein/train/start/consensus.h"
#include "skein/train/start/disk_check.h"

namespace skein {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

fs::path checked_folder(const std::optional<Config>& config) {
  if (!config) return fs::current_path();
  return is_object_url(checkpoint_dir(*config)) ? config->run.dir : checkpoint_dir(*config);
}

std::unique_ptr<Device> device_to_check(const std::optional<Config>& config, int index) {
  if (config) return training_device(*config, index);
  return make_device({.kind = std::string(best_backend().kind), .index = index});
}

// One that was there and is not any more is a fault of the machine, whatever the error.
CheckResult check_device(std::unique_ptr<Device>& device, const std::optional<Config>& config,
                         int index) {
  CheckResult result;
  try {
    device = device_to_check(config, index);
    result.found = device->kind();
  } catch (const Error& error) {
    result.health = Health::kSick;
    result.found = error.what();
  }
  return result;
}

Check product(Device& device, DType dtype, int64_t size, double seconds) {
  return {fmt::format("product {}", dtype_name(dtype)),
          [&device, dtype, size, seconds] { return check_product(device, dtype, size, seconds); }};
}

CheckResult check_free_memory(const Plan& plan) {
  const MemoryFit& fit = tightest(plan.memory);
  CheckResult result;
  result.found = fmt::format("{} of {} for {}: {}", format_bytes(fit.available_bytes), fit.memory,
                             counted(fit.ranks, "rank"), fit.limit);
  if (fit.fits()) return result;
  result.health = Health::kSick;
  result.expected = format_bytes(fit.needed_bytes);
  result.advice = "End other programs, or change what skein plan advises";
  return result;
}

// What lies there already is part of what the run keeps at once.
CheckResult check_free_disk(const Plan& plan, const fs::path& checkpoints) {
  const fs::path folder = nearest_folder(checkpoints);
  struct statvfs disk {};
  if (::statvfs(folder.c_str(), &disk) != 0) {
    fail(errno_code(errno), "cannot ask what is free in {}: {}", folder.string(),
         errno_text(errno));
  }
  const auto free = static_cast<int64_t>(disk.f_bavail * disk.f_frsize);
  const int64_t needed =
      disk_bytes_to_come(checkpoints, plan.run.disk_bytes, plan.run.checkpoint_bytes);
  CheckResult result;
  result.found = fmt::format("{} free in {}; the run's checkpoints take {} more",
                             format_bytes(free), folder.string(), format_bytes(needed));
  if (free >= needed) return result;
  result.health = Health::kSick;
  result.expected = "at least that";
  result.advice = "Make room, or lower checkpoint.keep";
  return result;
}

// Of those that this rank may run on.
CheckResult check_cores(const std::optional<Config>& config) {
  CheckResult result;
  result.found = cores_text();
  const int64_t threads = config ? config->device.threads : 0;
  if (threads <= num_cores()) return result;
  result.health = Health::kDoubtful;
  result.found = fmt::format("{} for {} threads", cores_text(), threads);
  result.expected = fmt::format("at most {} threads", num_cores());
  result.advice = "Lower device.threads, or set it to 0";
  return result;
}

void add_machine_checks(std::vector<Check>& checks, const std::optional<Config>& config,
                        const RankInfo& rank_info) {
  const fs::path folder = checked_folder(config);
  checks.push_back({"cores", [config] { return check_cores(config); }});
  checks.push_back({"storage", [=] { return check_storage(folder, 64 * kMiB); }});
  checks.push_back({"clock", [=] { return check_clock(folder); }});
  if (!config) return;
  Config planned = *config;
  leave_out_missing_tokenizer(planned);
  const auto plan = std::make_shared<Plan>(
      make_plan(memory_request(planned, planned_model(planned), std::max(1, rank_info.size))));
  if (!plan->memory.empty()) {
    checks.push_back({"free memory", [=] { return check_free_memory(*plan); }});
  }
  checks.push_back({"free disk", [=] { return check_free_disk(*plan, folder); }});
}

// Against the median of the machines, at the end of a barrier.
CheckResult check_peer_clocks(Communicator& world) {
  wait_for_all(world, "clocks are compared");
  const auto own = static_cast<int64_t>(unix_time() * 1e6);
  std::vector<int64_t> all = values_of_all(world, {&own, 1});
  std::sort(all.begin(), all.end());
  const double ahead = 1e-6 * static_cast<double>(own - all[all.size() / 2]);
  return judge_clock(ahead, fmt::format("the median of {} ranks", world.size()));
}

// The world of the host, and where the device has a transport of its own the one over it.
struct Peers {
  std::unique_ptr<Communicator> host, device;
  Communicator& fastest() const { return device ? *device : *host; }
};

Peers meet_peers(const std::optional<Config>& config, const RankInfo& rank_info, Device& device,
                 const std::string& folder) {
  const double timeout_s = config ? config->launch.collective_timeout_s : 60;
  Peers peers;
  peers.host = make_world({.rank = rank_info.rank,
                           .size = rank_info.size,
                           .rendezvous = folder,
                           .timeout_s = timeout_s,
                           .start_timeout_s = timeout_s});
  const Backend& backend = find_backend(device.kind());
  if (backend.make_world != nullptr) {
    DeviceWorldOptions options;
    options.stream = device.stream();
    options.timeout_s = timeout_s;
    peers.device = backend.make_world(*peers.host, options);
  }
  return peers;
}

void add_peer_checks(std::vector<Check>& checks, Device& device, const Peers& peers) {
  for (const CollectiveKind kind :
       {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce}) {
    checks.push_back({std::string(collective_name(kind)), [&device, &peers, kind] {
                        return check_collective(device, peers.fastest(), kind, 8 * kMiB);
                      }});
  }
  checks.push_back({"peers' clocks", [&peers] { return check_peer_clocks(*peers.host); }});
}

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof(name) - 1);
  const char* given = std::getenv("SKEIN_NODE");
  return given != nullptr ? given : name;
}

}  // namespace

std::vector<RankHealth> check_as_rank(const std::optional<Config>& config,
                                      const RankInfo& rank_info, const std::string& meet) {
  const bool has_peers = rank_info.size > 1;
  const Backend& backend = config ? training_backend(*config) : best_backend();
  if (has_peers && backend.expect_several_ranks != nullptr) backend.expect_several_ranks();
  const std::unique_ptr<Device> device = device_to_check(config, rank_info.local_rank);
  Peers peers;
  if (has_peers) peers = meet_peers(config, rank_info, *device, meet);
  std::vector<Check> checks;
  const int64_t size = std::min<int64_t>(2048, device->ceiling_size());
  for (const DType dtype : {DType::kBF16, DType::kF32}) {
    checks.push_back(product(*device, dtype, size, 0.5));
  }
  const bool speaks = rank_info.local_rank == 0;
  if (speaks || device->own_memory()) {
    checks.push_back({"memory", [&] { return check_memory_pattern(*device, 1024 * kMiB); }});
  }
  if (speaks) add_machine_checks(checks, config, rank_info);
  if (has_peers) add_peer_checks(checks, *device, peers);

  RankHealth mine{.host = host_name(), .rank = rank_info.rank};
  for (const Check& check : checks) mine.results.push_back(run_check(check));
  std::vector<RankHealth> all = {mine};
  if (has_peers) {
    all.clear();
    for (const std::string& text :
         texts_of_all(*peers.host, json_text(rank_health_to_json(mine)))) {
      all.push_back(rank_health_from_json(parse_json(text, "what a rank found")));
    }
    compare_with_peers(all);
  }
  return all;
}

bool check_short(const std::optional<Config>& config,
                 const std::function<void(const Check&)>& begins,
                 const std::function<void(const CheckResult&)>& ends) {
  bool is_well = true;
  const auto run = [&](const Check& check) {
    begins(check);
    const CheckResult result = run_check(check);
    ends(result);
    is_well &= result.health != Health::kSick;
  };
  const Backend& backend = config ? training_backend(*config) : best_backend();
  const auto workers = static_cast<int>(config ? config->launch.workers : 1);
  const int count = std::max(1, std::min(workers, backend.num_devices()));
  std::vector<std::unique_ptr<Device>> devices(static_cast<size_t>(count));
  for (int index = 0; index < count; ++index) {
    std::unique_ptr<Device>& device = devices[static_cast<size_t>(index)];
    run({"device", [&] { return check_device(device, config, index); }});
    if (!device) continue;
    run(product(*device, DType::kBF16, 512, 0.05));
    run({"memory", [&] { return check_memory_pattern(*device, 64 * kMiB); }});
  }
  run({"storage", [&] { return check_storage(checked_folder(config), kMiB); }});
  return is_well;
}

}  // namespace skein
