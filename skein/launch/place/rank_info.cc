#include "skein/launch/place/rank_info.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/numbers/hash.h"
#include "skein/store/key_value_store.h"

namespace skein {
namespace {

constexpr size_t kMaxStartId = 128;

// Numbers of the steps that Slurm itself creates: interactive, batch script, extern, pending
// (slurm.h).
constexpr int64_t kFirstSpecialStep = 0xfffffffa;

bool is_name_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
         c == '_';
}

class Variables {
 public:
  Variables(const ReadVariable& read, std::string launcher)
      : read_(read), launcher_(std::move(launcher)) {}

  // The value of a variable; empty if it is not set.
  std::string text(const char* name) const {
    const char* value = read_(name);
    return value == nullptr ? "" : value;
  }
  bool has(const char* name) const { return !text(name).empty(); }

  std::string required(const char* name) const {
    if (has(name)) return text(name);
    if (is_by_hand()) {
      fail(ErrorCode::kUsage,
           "{} is set and {} is not set: set all of SKEIN_RANK, SKEIN_SIZE, SKEIN_LOCAL_RANK, "
           "SKEIN_LOCAL_SIZE and SKEIN_START_ID, or none of them to train without a launcher",
           has("SKEIN_RANK") ? "SKEIN_RANK" : "SKEIN_SIZE", name);
    }
    fail(ErrorCode::kUsage, "{} is not set, though this process was started by {}: expected it",
         name, launcher_);
  }

  int64_t number(const char* name, int64_t min, int64_t max) const {
    const std::string value = required(name);
    int64_t number = 0;
    const char* end = value.data() + value.size();
    const auto [stop, problem] = std::from_chars(value.data(), end, number);
    if (problem != std::errc() || stop != end || number < min || number > max) {
      fail(ErrorCode::kUsage, "{} is \"{}\"{}: expected a whole number from {} to {}", name,
           value.substr(0, 100), is_by_hand() ? "" : fmt::format(" (set by {})", launcher_), min,
           max);
    }
    return number;
  }
  int count(const char* name, int64_t max = 1'000'000) const {
    return static_cast<int>(number(name, 1, max));
  }
  int index(const char* name, int size) const {
    return static_cast<int>(number(name, 0, size - 1));
  }

  RankInfo rank_info(const char* rank, const char* size, const char* local_rank,
                     const char* local_size) const {
    RankInfo rank_info;
    rank_info.launcher = launcher_;
    rank_info.size = count(size);
    rank_info.rank = index(rank, rank_info.size);
    rank_info.local_size = count(local_size, rank_info.size);
    rank_info.local_rank = index(local_rank, rank_info.local_size);
    return rank_info;
  }

  // A readable name with a hash of everything that distinguishes one start from another.
  // `identity`: how the launcher identifies the run; `attempts`: counters of its restarts.
  std::string start_id(const std::vector<std::string>& identity,
                       const std::vector<std::string>& attempts) const {
    std::vector<std::string> parts = {text("SKEIN_START_ID")};
    if (parts.front().empty()) parts = identity;
    parts.insert(parts.end(), attempts.begin(), attempts.end());
    std::string whole;  // NUL separates the parts, since none holds one
    std::string name = launcher_;
    for (const std::string& part : parts) {
      whole += part + '\0';
      name += "-" + part;
    }
    std::replace_if(
        name.begin(), name.end(), [](char c) { return !is_name_character(c); }, '_');
    return fmt::format("{}-{:08x}", name.substr(0, 48), hash_name(whole) >> 32);
  }

 private:
  // Skein's own variables, which no supervisor of its own set.
  bool is_by_hand() const { return launcher_ == "skein" && !has("SKEIN_PARENT_PID"); }

  const ReadVariable& read_;
  std::string launcher_;
};

RankInfo rank_info_of_skein(const Variables& variables) {
  RankInfo rank_info =
      variables.rank_info("SKEIN_RANK", "SKEIN_SIZE", "SKEIN_LOCAL_RANK", "SKEIN_LOCAL_SIZE");
  rank_info.start_id = variables.required("SKEIN_START_ID");
  if (rank_info.start_id.size() > kMaxStartId ||
      !std::all_of(rank_info.start_id.begin(), rank_info.start_id.end(), is_name_character)) {
    fail(ErrorCode::kUsage,
         "SKEIN_START_ID is \"{}\": expected at most {} letters, digits, '-' and '_'",
         rank_info.start_id.substr(0, 200), kMaxStartId);
  }
  if (variables.has("SKEIN_PARENT_PID")) {
    rank_info.parent_pid = variables.number("SKEIN_PARENT_PID", 1, INT32_MAX);
    if (variables.has("SKEIN_HEARTBEATS")) {
      rank_info.heartbeats = static_cast<int>(variables.number("SKEIN_HEARTBEATS", 0, 1 << 20));
    }
    if (variables.has("SKEIN_ORDERS")) {
      rank_info.orders = static_cast<int>(variables.number("SKEIN_ORDERS", 0, 1 << 20));
      rank_info.standard_output = static_cast<int>(variables.number("SKEIN_STDOUT", 0, 1 << 20));
      rank_info.standard_error = static_cast<int>(variables.number("SKEIN_STDERR", 0, 1 << 20));
    }
    rank_info.replicas = variables.text("SKEIN_REPLICAS");
    if (variables.has("SKEIN_GENERATION")) {
      rank_info.generation = variables.number("SKEIN_GENERATION", 1, int64_t{1} << 53);
      rank_info.launched_ms = variables.number("SKEIN_LAUNCHED_MS", 0, int64_t{1} << 53);
      rank_info.waited_ms = variables.number("SKEIN_WAITED_MS", 0, int64_t{1} << 53);
    }
  }
  return rank_info;
}

// Strips the last two parts of .../torchelastic_x1/id_x2/attempt_0/3/error.json, where x1 and x2
// are random at each start, so that all ranks of a machine have the same path.
std::string torchrun_log_folder(const Variables& variables) {
  return fs::path(variables.text("TORCHELASTIC_ERROR_FILE")).parent_path().parent_path();
}

void refuse_ambiguous_torchrun(const Variables& variables, const std::string& run_id) {
  // Each torchrun agent counts only the restarts that its own workers caused.
  if (variables.has("TORCHELASTIC_MAX_RESTARTS") &&
      variables.text("TORCHELASTIC_MAX_RESTARTS") != "0") {
    fail(ErrorCode::kUsage,
         "TORCHELASTIC_MAX_RESTARTS is {}: torchrun counts restarts on each machine by itself, so "
         "the ranks could not tell one start from another; give it --max-restarts 0",
         variables.text("TORCHELASTIC_MAX_RESTARTS"));
  }
  if (run_id == "none" && !variables.has("SKEIN_START_ID")) {
    fail(ErrorCode::kUsage,
         "TORCHELASTIC_RUN_ID is \"none\" and there are several machines: the ranks could not tell "
         "one start from another; give torchrun --rdzv-id with a name that is new at every start, "
         "such as the scheduler's job id");
  }
}

RankInfo rank_info_of_torchrun(const Variables& variables) {
  RankInfo rank_info = variables.rank_info("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE");
  const std::string run_id = variables.required("TORCHELASTIC_RUN_ID");
  std::vector<std::string> identity = {run_id, variables.text("MASTER_PORT")};
  std::vector<std::string> attempts = {variables.text("TORCHELASTIC_RESTART_COUNT"),
                                       variables.text("SLURM_RESTART_COUNT")};
  if (rank_info.local_size == rank_info.size) {
    identity.push_back(torchrun_log_folder(variables));
  } else {
    refuse_ambiguous_torchrun(variables, run_id);
  }
  rank_info.start_id = variables.start_id(identity, attempts);
  return rank_info;
}

RankInfo rank_info_of_open_mpi(const Variables& variables) {
  RankInfo rank_info =
      variables.rank_info("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                          "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE");
  // The job number derives from mpirun's host and process id, which repeat in containers; the port
  // in its address does not.
  const std::vector<std::string> identity = {
      variables.text("PMIX_NAMESPACE"), variables.text("OMPI_MCA_ess_base_jobid"),
      variables.text("OMPI_MCA_orte_hnp_uri"), variables.text("SLURM_JOB_ID"),
      variables.text("SLURM_RESTART_COUNT")};
  if (identity[0].empty() && identity[1].empty() && !variables.has("SKEIN_START_ID")) {
    fail(ErrorCode::kUsage,
         "Open MPI set neither PMIX_NAMESPACE nor OMPI_MCA_ess_base_jobid: expected one, to tell "
         "this start from others; set SKEIN_START_ID to a name that is new at every start");
  }
  rank_info.start_id = variables.start_id(identity, {});
  return rank_info;
}

// The number of tasks on node `node`: "2(x3),1" means 2 on each of nodes 0, 1 and 2, and 1 on node
// 3.
int tasks_on_node(const std::string& list, int64_t node) {
  std::string_view rest = list;
  const auto number = [&](int64_t& value) {
    const auto [stop, problem] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    rest.remove_prefix(static_cast<size_t>(stop - rest.data()));
    return problem == std::errc() && value >= 1;
  };
  const auto skip = [&](std::string_view text) {
    const bool found = rest.starts_with(text);
    if (found) rest.remove_prefix(text.size());
    return found;
  };
  do {
    int64_t tasks = 0, nodes = 1;
    if (!number(tasks) || (skip("(x") && !(number(nodes) && skip(")")))) break;
    if (node < nodes) return static_cast<int>(std::min<int64_t>(tasks, INT32_MAX));
    node -= nodes;
  } while (skip(","));
  fail(ErrorCode::kUsage,
       "SLURM_STEP_TASKS_PER_NODE is \"{}\": expected tasks for each node, such as \"2(x3),1\", "
       "with an entry for SLURM_NODEID",
       list.substr(0, 100));
}

std::optional<RankInfo> rank_info_of_slurm(const Variables& variables) {
  if (!variables.has("SLURM_STEP_ID") || !variables.has("SLURM_PROCID")) return std::nullopt;
  if (variables.number("SLURM_STEP_ID", 0, UINT32_MAX) >= kFirstSpecialStep) return std::nullopt;
  // SLURM_NTASKS may be that of the job instead of the step.
  const char* size =
      variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  if (!variables.has(size)) return std::nullopt;
  RankInfo rank_info;
  rank_info.launcher = "Slurm";
  rank_info.size = variables.count(size);
  if (rank_info.size == 1) return std::nullopt;
  rank_info.rank = variables.index("SLURM_PROCID", rank_info.size);
  const int64_t node = variables.number("SLURM_NODEID", 0, 1'000'000);
  rank_info.local_size = std::min(
      tasks_on_node(variables.required("SLURM_STEP_TASKS_PER_NODE"), node), rank_info.size);
  rank_info.local_rank = variables.index("SLURM_LOCALID", rank_info.local_size);
  rank_info.start_id =
      variables.start_id({variables.required("SLURM_JOB_ID"), variables.text("SLURM_STEP_ID")},
                         {variables.text("SLURM_RESTART_COUNT")});
  return rank_info;
}

void refuse_unknown_ranks(const Variables& variables) {
  if (!variables.has("RANK") || !variables.has("WORLD_SIZE")) return;
  if (variables.text("WORLD_SIZE") == "1") return;
  fail(
      ErrorCode::kUsage,
      "RANK is \"{}\" and WORLD_SIZE \"{}\", but torchrun did not set them (TORCHELASTIC_RUN_ID is "
      "not set): on some platforms they count machines, not processes. Start skein with torchrun, "
      "or set SKEIN_RANK, SKEIN_SIZE, SKEIN_LOCAL_RANK, SKEIN_LOCAL_SIZE and SKEIN_START_ID, or "
      "unset RANK and WORLD_SIZE to train on this machine alone",
      variables.text("RANK").substr(0, 100), variables.text("WORLD_SIZE").substr(0, 100));
}

}  // namespace

std::optional<RankInfo> rank_info_from_environment(const ReadVariable& read) {
  const Variables skein(read, "skein"), torchrun(read, "torchrun"), open_mpi(read, "Open MPI"),
      slurm(read, "Slurm");
  if (skein.has("SKEIN_RANK") || skein.has("SKEIN_SIZE")) return rank_info_of_skein(skein);
  if (torchrun.has("TORCHELASTIC_RUN_ID") && torchrun.has("RANK"))
    return rank_info_of_torchrun(torchrun);
  if (open_mpi.has("OMPI_COMM_WORLD_RANK")) return rank_info_of_open_mpi(open_mpi);
  if (auto rank_info = rank_info_of_slurm(slurm)) return rank_info;
  refuse_unknown_ranks(torchrun);
  return std::nullopt;
}

std::optional<RankInfo> rank_info_from_environment() {
  return rank_info_from_environment(std::getenv);
}

void check_workers(const RankInfo& rank_info, int64_t workers, const std::string& nodes) {
  if (nodes != "1" && rank_info.parent_pid == 0) {
    fail(ErrorCode::kUsage,
         "launch.nodes is \"{}\", which takes one process on each machine, and {} started {} on "
         "this one: start one (srun --ntasks-per-node=1) with launch.workers = {}, or leave "
         "launch.nodes out",
         nodes, rank_info.launcher, rank_info.local_size, rank_info.local_size);
  }
  if (workers == 1 || workers == rank_info.local_size) return;
  fail(
      ErrorCode::kUsage,
      "launch.workers is {}, but {} started {} on this machine: leave launch.workers out, or start "
      "skein without {}",
      workers, rank_info.launcher, rank_info.local_size, rank_info.launcher);
}

fs::path rendezvous_folder(const std::string& rendezvous, const fs::path& run_dir,
                           const std::string& start_id) {
  const bool is_folder = !rendezvous.empty() && !is_etcd_address(rendezvous);
  return (is_folder ? fs::path(rendezvous) : run_dir / "rendezvous") / start_id;
}

fs::path rank_log(const fs::path& run_dir, int rank) {
  return run_dir / "logs" / fmt::format("rank-{:05}.log", rank);
}

}  // namespace skein
