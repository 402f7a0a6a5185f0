// A worker that is killed or stalls ends the run at once, with its name, and harms no checkpoint; a
// run that was interrupted any number of times, in any layouts that keep the bits, ends with those
// of a run that never was.
#include "tests/parallel_job.h"

namespace skein {
namespace {

constexpr int64_t kSteps = 60;
constexpr double kCollectiveTimeoutS = 10, kGraceS = 5;  // WorkerLaunch::grace_s
constexpr double kSlackS = 100;  // of a slow machine with other work; a hang is longer

const ParallelJob& job() {
  static const ParallelJob job;
  return job;
}

Overrides setting() {
  return ParallelJob::setting(kSteps) +
         Overrides{"checkpoint.every_steps=7", "checkpoint.keep=2", "launch.max_restarts=0",
                   fmt::format("launch.collective_timeout_s={}", kCollectiveTimeoutS)};
}

RunLayout four_workers() {
  RunLayout layout;
  layout.data = 2;
  layout.pipeline = 2;
  return layout;
}

const std::string& whole() {
  static const std::string name = [] {
    job().trained("whole", setting() + RunLayout().overrides());
    return std::string("whole");
  }();
  return name;
}

int64_t last_step(const std::string& name) {
  if (!fs::exists(job().run(name) / "metrics.jsonl")) return 0;
  const Curve curve = read_curve(job().run(name));
  return curve.empty() ? 0 : curve.rbegin()->first;
}

bool is_saving(const std::string& name) {
  std::error_code none_yet;
  for (const auto& entry : fs::directory_iterator(job().run(name) / "checkpoints", none_yet)) {
    if (entry.path().extension() == ".partial") return true;
  }
  return false;
}

std::string environment_of(pid_t pid, const std::string& name) {
  std::ifstream stream(fmt::format("/proc/{}/environ", pid), std::ios::binary);
  for (std::string variable; std::getline(stream, variable, '\0');) {
    if (variable.starts_with(name + "=")) return variable.substr(name.size() + 1);
  }
  return "";
}

// Process ids of the parent's workers by rank.
std::map<int, pid_t> workers_of(pid_t parent) {
  std::map<int, pid_t> workers;
  for (const pid_t pid : children_of(parent)) {
    const std::string rank = environment_of(pid, "SKEIN_RANK");
    if (!rank.empty()) workers[std::stoi(rank)] = pid;
  }
  return workers;
}

// A process that ended may stay in the table for a while.
bool runs(pid_t pid) {
  std::ifstream stream(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(stream, text);
  const size_t state = text.rfind(')');
  return state != std::string::npos && text.find_first_of("ZX", state) != state + 2;
}

void expect_same_bits(const std::string& name) {
  EXPECT_EQ(different_bits(read_curve(job().run(whole())), read_curve(job().run(name))), "");
  EXPECT_EQ(different_state(job().checkpoint(whole(), kSteps), job().checkpoint(name, kSteps)), "");
}

// Starts four workers, waits for `moment`, sends `signal` to `rank`, and checks how all of it ends.
template <typename Moment>
std::string fail_worker(const std::string& name, int rank, int signal, const Moment& moment) {
  SkeinProcess process(job().arguments("train", name, setting() + four_workers().overrides()));
  EXPECT_TRUE(wait_until(moment));
  const std::map<int, pid_t> workers = workers_of(process.pid());
  EXPECT_EQ(workers.size(), 4u);
  if (!workers.contains(rank)) return "";
  const auto start = std::chrono::steady_clock::now();
  ::kill(workers.at(rank), signal);
  const Outcome outcome = process.wait(ParallelJob::kRunTimeoutS);
  const double seconds = Seconds(std::chrono::steady_clock::now() - start).count();
  fmt::print("ended after {:.1f} s\n", seconds);
  const bool stalls = signal == SIGSTOP;
  EXPECT_LT(seconds, (stalls ? kCollectiveTimeoutS + 2 * kGraceS : kGraceS) + kSlackS);
  EXPECT_EQ(outcome.exit_code, 1) << outcome.err;
  for (const auto& [other, pid] : workers) {
    EXPECT_TRUE(wait_until([worker = pid] { return !runs(worker); }))
        << "rank " << other << " still runs";
  }
  const auto lines = outcome.error_lines();
  EXPECT_EQ(lines.size(), 1u) << outcome.err;
  expect_only_good_checkpoints(job().run(name));
  return lines.empty() ? "" : lines.front();
}

void resume_and_compare(const std::string& name, const RunLayout& layout) {
  const Outcome outcome = job().run_for(name, setting() + layout.overrides());
  ASSERT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_FALSE(is_saving(name));
  expect_same_bits(name);
}

TEST(ParallelFailure, KilledWorker) {
  const std::string line =
      fail_worker("killed", 2, SIGKILL, [] { return last_step("killed") >= 20; });
  EXPECT_NE(line.find("skein: rank 2 was killed by signal 9 (SIGKILL)"), std::string::npos) << line;
  resume_and_compare("killed", four_workers());
}

// Of three kinds of failure, one after the other.
TEST(ParallelFailure, WorkersAreStartedAgainAndTheBitsStay) {
  const Overrides patient = {"launch.max_restarts=100", "launch.hang_timeout_s=2"};
  SkeinProcess process(
      job().arguments("train", "again", setting() + patient + four_workers().overrides()));
  int64_t step = 0;
  for (const int signal : {SIGKILL, SIGSEGV, SIGSTOP}) {
    step += 12;
    ASSERT_TRUE(wait_until([&] { return last_step("again") >= step; }));
    const std::map<int, pid_t> workers = workers_of(process.pid());
    ASSERT_EQ(workers.size(), 4u);
    ::kill(workers.at(signal % 4), signal);
    ASSERT_TRUE(wait_until([&] { return !runs(workers.at(signal % 4)); }));
  }
  const Outcome outcome = process.wait(ParallelJob::kRunTimeoutS);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* said : {"SIGKILL", "SIGSEGV", "generation 4 continues with"}) {
    EXPECT_NE((outcome.out + outcome.err).find(said), std::string::npos) << said;
  }
  expect_same_bits("again");
}

// What the newest start says that it goes on from.
std::string newest_from(const std::string& name) {
  std::string from;
  for (const OrderedJson& event : read_json_lines(job().run(name) / "events.jsonl")) {
    if (event.at("event") == "start") from = event.at("from").get<std::string>();
  }
  return from;
}

// Trains with these settings, and kills a worker on the way; returns the step that was done then.
int64_t killed_once(const std::string& name, const Overrides& saves) {
  SkeinProcess process(job().arguments(
      "train", name,
      setting() + Overrides{"launch.max_restarts=100"} + saves + four_workers().overrides()));
  EXPECT_TRUE(wait_until([&] { return last_step(name) >= 15; }));
  const std::map<int, pid_t> workers = workers_of(process.pid());
  EXPECT_EQ(workers.size(), 4u);
  ::kill(workers.at(1), SIGKILL);
  const int64_t step = last_step(name);
  const Outcome outcome = process.wait(ParallelJob::kRunTimeoutS);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  expect_same_bits(name);
  return step;
}

// These steps take about as long as a copy, and a copy begins once the one before is whole on all
// ranks.
TEST(ParallelFailure, GoesOnFromMemoryAndLosesAFewMilliseconds) {
  const int64_t step =
      killed_once("memory", {"checkpoint.every_steps=0", "checkpoint.memory_every_steps=1"});
  int64_t of_copy = 0;
  const std::string from = newest_from("memory");
  ASSERT_EQ(std::sscanf(from.c_str(), "the copy of step %ld in memory", &of_copy), 1) << from;
  EXPECT_GE(of_copy, step - 3);
}

TEST(ParallelFailure, GoesOnFromStorageWithoutCopies) {
  killed_once("storage", {"checkpoint.memory_every_steps=0"});
  EXPECT_NE(newest_from("storage").find("/checkpoints/step-"), std::string::npos);
}

TEST(ParallelFailure, KilledWhileSaving) {
  const std::string line = fail_worker("saving", 3, SIGKILL, [] { return is_saving("saving"); });
  EXPECT_NE(line.find("skein: rank 3 was killed by signal 9 (SIGKILL)"), std::string::npos) << line;
  resume_and_compare("saving", RunLayout());
}

TEST(ParallelFailure, StalledWorker) {
  const std::string line =
      fail_worker("stalled", 1, SIGSTOP, [] { return last_step("stalled") >= 20; });
  EXPECT_TRUE(line.starts_with("skein: rank ")) << line;
  EXPECT_NE(line.find("rank 1"), std::string::npos) << line;
  resume_and_compare("stalled", four_workers());
}

TEST(ParallelFailure, StopSavesAndExitsWith75) {
  SkeinProcess process(job().arguments("train", "stopped", setting() + four_workers().overrides()));
  ASSERT_TRUE(wait_until([] { return last_step("stopped") >= 10; }));
  process.send(SIGTERM);
  const Outcome outcome = process.wait();
  EXPECT_EQ(outcome.exit_code, 75) << outcome.err;
  EXPECT_EQ(outcome.error_lines().size(), 0u) << outcome.err;
  const int64_t stopped_at = last_step("stopped");
  EXPECT_LT(stopped_at, kSteps);
  EXPECT_TRUE(fs::exists(job().checkpoint("stopped", stopped_at) / "manifest.json"));
  resume_and_compare("stopped", four_workers());
}

TEST(ParallelFailure, KilledAtRandomMomentsInRandomLayouts) {
  const char* asked = std::getenv("SKEIN_KILLS");  // how many; a few where it is not set
  const int kills = asked == nullptr ? 4 : std::stoi(asked);
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(fmt::format("random seed {}", seed));
  std::mt19937_64 random(seed);
  std::vector<RunLayout> layouts = all_layouts(asked == nullptr ? 4 : 8);
  std::erase_if(layouts, [](const RunLayout& layout) {
    return !layout.keeps_the_bits() || layout.tied || layout.layers != 5;
  });
  int killed_parents = 0, killed_workers = 0;
  for (int i = 0; i < kills && last_step("random") < kSteps; ++i) {
    const RunLayout layout = layouts[random() % layouts.size()];
    fmt::print("{} at step {}\n", layout.name(), last_step("random"));
    SkeinProcess process(job().arguments("train", "random", setting() + layout.overrides()));
    // Anywhere between the first moments of a start and some steps on.
    std::this_thread::sleep_for(std::chrono::milliseconds(100 + random() % 3000));
    const std::map<int, pid_t> workers = workers_of(process.pid());
    const bool kill_parent = workers.empty() || random() % 3 == 0;
    ++(kill_parent ? killed_parents : killed_workers);
    ::kill(kill_parent
               ? process.pid()
               : std::next(workers.begin(), static_cast<int>(random() % workers.size()))->second,
           SIGKILL);
    const Outcome outcome = process.wait();
    if (outcome.exit_code == 0) break;  // it was done before
    EXPECT_EQ(outcome.exit_code, kill_parent ? -SIGKILL : 1) << outcome.err;
    for (const auto& [rank, pid] : workers) {
      EXPECT_TRUE(wait_until([worker = pid] { return !runs(worker); }))
          << "rank " << rank << " still runs";
    }
    expect_only_good_checkpoints(job().run("random"));
  }
  fmt::print("{} workers and {} parents killed\n", killed_workers, killed_parents);
  resume_and_compare("random", layouts[random() % layouts.size()]);
}

}  // namespace
}  // namespace skein
