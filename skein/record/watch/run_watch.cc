#include "skein/record/watch/run_watch.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/threads/mutex.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/record/files/events.h"
#include "skein/record/files/jsonl.h"
#include "skein/record/watch/run_state.h"

namespace skein {
namespace {

constexpr size_t kBatch = 512;          // lines that are taken in at once
constexpr int64_t kEndBytes = 1 << 20;  // of a file, for the newest line
constexpr int kNice = 10;               // below the supervisor and the workers

// So that the reader ends where nobody wants it any more.
struct WatchStopped {};

int64_t size_of(const fs::path& path) {
  std::error_code problem;
  const std::uintmax_t size = fs::file_size(path, problem);
  return problem ? 0 : static_cast<int64_t>(size);
}

struct Disk {
  const char* name;
  fs::space_info space;
};

std::string folder_label(const char* name) { return fmt::format("folder=\"{}\"", name); }

void add_disks(PrometheusText& text, const std::vector<Disk>& disks) {
  text.family("disk_free_bytes", "gauge", "Free for this user where the folder is.");
  for (const Disk& disk : disks) text.sample(disk.space.available, folder_label(disk.name));
  text.family("disk_size_bytes", "gauge", "All that the file system of the folder holds.");
  for (const Disk& disk : disks) text.sample(disk.space.capacity, folder_label(disk.name));
}

}  // namespace

// Held by the thread that reads as well, which may outlive the watch.
class RunWatch::Reader {
 public:
  explicit Reader(const Config& config)
      : run_dir_(config.run.dir),
        checkpoint_dir_(checkpoint_dir(config)),
        events_(run_dir_ / "events.jsonl"),
        metrics_(run_dir_ / "metrics.jsonl"),
        state_(config.run.steps, unix_time()) {}

  void set_cluster(const Cluster& cluster) {
    generation_.store(cluster.generation, std::memory_order_relaxed);
    hosts_.store(cluster.hosts, std::memory_order_relaxed);
    hosts_wanted_.store(cluster.hosts_wanted, std::memory_order_relaxed);
  }

  // Takes no lock: a reader that waits sees it within kLook.
  void stop() { stops_.store(true, std::memory_order_relaxed); }

  std::string text() {
    Lock lock(mutex_);
    const int64_t mine = ++asked_;
    changed_.notify_all();
    const auto is_read = [&]() SKEIN_REQUIRES(mutex_) { return read_ >= mine; };
    // Who waited in vain speaks for all until the reader has come to the end.
    if (!is_late_) is_late_ = !changed_.wait_for(lock, kPatience, is_read);
    PrometheusText text;
    const double now = unix_time();
    state_.add_newest(text, now, is_whole_);
    text.gauge("generation", generation_.load(std::memory_order_relaxed),
               "How often the workers of this launch were started.");
    text.gauge("hosts", hosts_.load(std::memory_order_relaxed), "Machines that train.");
    text.gauge("hosts_wanted", hosts_wanted_.load(std::memory_order_relaxed),
               "Machines that launch.nodes asks for at most.");
    text.gauge("catching_up", is_whole_ ? 0 : 1,
               "1 until the run's files were read once: metrics that need them are left out.");
    if (is_whole_) state_.add_times(text);
    if (has_events_) {
      state_.add_failures(text);
      state_.add_checkpoints(text, now);
    }
    add_disks(text, disks_);
    text.counter("watch_errors_total", state_.watch_errors(),
                 "Scrapes for which the run could not be read.");
    return text.text();
  }

  void work() {
    ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kNice);
    try {
      while (const int64_t asked = wait_for_work()) read(asked);
    } catch (const WatchStopped&) {
    }
  }

 private:
  static constexpr std::chrono::milliseconds kLook{200};

  // What text() was asked for so far; 0: the watch has ended.
  int64_t wait_for_work() {
    Lock lock(mutex_);
    while (asked_ == read_) {
      if (stops_.load(std::memory_order_relaxed)) return 0;
      changed_.wait_for(lock, kLook, [this]() SKEIN_REQUIRES(mutex_) { return asked_ > read_; });
    }
    return asked_;
  }

  void read(int64_t asked) {
    bool is_read = false;
    try {
      note_disks();
      if (!has_begun_) note_newest();
      has_begun_ = true;
      read_on();
      is_read = true;
    } catch (const WatchStopped&) {
      throw;
    } catch (const std::exception&) {
    }
    const Lock lock(mutex_);
    read_ = asked;
    is_late_ = false;
    if (is_read) {
      is_whole_ = true;
    } else {
      state_.note_error();
    }
    changed_.notify_all();
  }

  void note_disks() {
    std::vector<Disk> disks;
    for (const auto& [name, folder] :
         {std::pair("run", run_dir_), std::pair("checkpoints", checkpoint_dir_)}) {
      std::error_code problem;
      const fs::space_info space = fs::space(folder, problem);
      if (!problem) disks.push_back({name, space});
    }
    const Lock lock(mutex_);
    disks_ = std::move(disks);
  }

  // Of a long file: what text() can say before all of it is read.
  void note_newest() {
    const fs::path path = run_dir_ / "metrics.jsonl";
    const int64_t size = size_of(path);
    if (size <= 2 * kEndBytes) return;
    std::optional<StepMetrics> newest;
    JsonlTail(path, size - kEndBytes).read([&](const Json& json) {
      if (std::optional<StepMetrics> metrics = parse_metrics(json)) newest = std::move(metrics);
    });
    const Lock lock(mutex_);
    if (newest) state_.note_newest(*newest);
  }

  // Events first: they say to which start a step belongs. The lock is held to take lines in, not
  // to read them.
  void read_on() {
    std::vector<Json> events;
    read_lines(events_, events, [&](const Json& json) { take_in(events, json); });
    {
      const Lock lock(mutex_);
      has_events_ = true;
    }
    std::vector<StepMetrics> steps;
    read_lines(metrics_, steps, [&](const Json& json) {
      if (const std::optional<StepMetrics> metrics = parse_metrics(json)) take_in(steps, *metrics);
    });
    const Lock lock(mutex_);
    state_.settle();
  }

  // What was read before an error is taken in: the next look goes on behind it.
  template <typename Line>
  void read_lines(JsonlTail& tail, std::vector<Line>& lines,
                  const std::function<void(const Json&)>& visit) {
    const auto read = try_run([&] { return tail.read(visit), true; });
    take_in(lines);
    if (!read.ok()) throw read.error();
  }

  template <typename Line>
  void take_in(std::vector<Line>& lines, const Line& line) {
    lines.push_back(line);
    if (lines.size() >= kBatch) take_in(lines);
  }
  void take_in(std::vector<Json>& events) {
    if (stops_.load(std::memory_order_relaxed)) throw WatchStopped();
    const Lock lock(mutex_);
    for (const Json& event : events) state_.add_event(event);
    events.clear();
  }
  void take_in(std::vector<StepMetrics>& steps) {
    if (stops_.load(std::memory_order_relaxed)) throw WatchStopped();
    const Lock lock(mutex_);
    const std::optional<StepMetrics> newest = is_whole_ ? std::nullopt : state_.newest();
    for (const StepMetrics& step : steps) state_.add_step(step);
    if (newest && !steps.empty() && newest->time > steps.back().time) state_.note_newest(*newest);
    steps.clear();
  }

  const fs::path run_dir_, checkpoint_dir_;
  std::atomic<int64_t> generation_ = 1, hosts_ = 1, hosts_wanted_ = 1;
  std::atomic<bool> stops_ = false;

  JsonlTail events_, metrics_;  // of the thread that reads
  bool has_begun_ = false;      // the same

  Mutex mutex_;
  ConditionVariable changed_;
  RunState state_ SKEIN_GUARDED_BY(mutex_);
  std::vector<Disk> disks_ SKEIN_GUARDED_BY(mutex_);
  int64_t asked_ SKEIN_GUARDED_BY(mutex_) = 0, read_ SKEIN_GUARDED_BY(mutex_) = 0;
  bool has_events_ SKEIN_GUARDED_BY(mutex_) = false;
  bool is_whole_ SKEIN_GUARDED_BY(mutex_) = false;  // both files were read once
  bool is_late_ SKEIN_GUARDED_BY(mutex_) = false;
};

RunWatch::RunWatch(const Config& config) : reader_(std::make_shared<Reader>(config)) {}

RunWatch::~RunWatch() { reader_->stop(); }

void RunWatch::set_cluster(const Cluster& cluster) { reader_->set_cluster(cluster); }

std::string RunWatch::text() noexcept { return shared_text()(); }

std::function<std::string()> RunWatch::shared_text() const {
  std::call_once(reads_, [this] { quiet_thread([reader = reader_] { reader->work(); }).detach(); });
  return [reader = reader_]() noexcept { return reader->text(); };
}

}  // namespace skein
