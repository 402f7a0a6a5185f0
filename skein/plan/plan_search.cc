#include "skein/plan/plan_search.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/mutex.h"
#include "skein/base/units.h"
#include "skein/plan/layout_bounds.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

// A sketch may be slower than the plan by as much: short-lived memory and buckets of gradients are
// no matter of single layers.
constexpr double kSketchMargin = 0.995;

// How much is known of a layout.
enum class Known { kSizes, kLayers, kSketch };
constexpr Known kAllKnown[] = {Known::kSizes, Known::kLayers, Known::kSketch};

struct Candidate {
  LayoutChoice choice;
  ParallelLayout layout;
  double seconds = 0;  // a lower bound
  int64_t order = 0;   // of those that are equal
  Known known = Known::kSizes;
};

struct IsLater {
  bool operator()(const Candidate& a, const Candidate& b) const {
    return std::pair(a.seconds, a.order) > std::pair(b.seconds, b.order);
  }
};

// From the least bound on.
using Candidates = std::priority_queue<Candidate, std::vector<Candidate>, IsLater>;

ArenaBytes on_device(const StagePlan& stage) {
  ArenaBytes bytes = stage.arena_bytes;
  for (size_t arena = 0; arena < bytes.size(); ++arena) {
    if (stage.on_host[arena]) bytes[arena] = 0;
  }
  return bytes;
}

// The memory of a device without the margin; where the ranks of a node share one memory, an equal
// part of its free bytes.
int64_t memory_of_rank(const PlanRequest& request) {
  const Hardware& hardware = request.hardware;
  const auto without_margin = [&](int64_t bytes) {
    return bytes - margin_of(bytes, request.memory_margin);
  };
  if (!hardware.unified_memory) return without_margin(hardware.memory_bytes);
  int64_t bytes = std::numeric_limits<int64_t>::max();
  for (const MemoryLimit& limit : request.limits) {
    if (!limit.id.empty()) bytes = std::min(bytes, without_margin(limit.free_bytes));
  }
  return bytes / std::min(request.ranks, hardware.devices_per_node);
}

class Search {
 public:
  Search(const PlanRequest& request, const LayoutSearchOptions& options)
      : request_(request),
        options_(options),
        rank_bytes_(memory_of_rank(request)),
        bounds_(request, sketches_) {}

  SearchResult run() {
    enumerate();
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads_; ++i) threads.emplace_back([this] { work(); });
    wait_for_end();
    for (std::thread& thread : threads) thread.join();
    return finish();
  }

 private:
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

  void enumerate() {
    const Lock lock(mutex_);
    for_each_layout(request_,
                    {[this](const LayoutChoice& choice, const ParallelLayout& layout)
                         SKEIN_REQUIRES(mutex_) { consider(choice, layout); },
                     [this](const char* reason, const char* example) SKEIN_REQUIRES(mutex_) {
                       ++result_.num_layouts;
                       refuse(reason, example);
                     }});
  }

  void consider(const LayoutChoice& choice, const ParallelLayout& layout) SKEIN_REQUIRES(mutex_) {
    Candidate candidate = {.choice = choice, .layout = layout, .order = result_.num_layouts++};
    if (!options_.exhaustive) {
      const LayoutBounds::Bound bound = bounds_.of_sizes(choice, layout);
      if (refuse_large(choice, bound.bytes, "at least ")) return;
      candidate.seconds = bound.seconds;
    }
    put(std::move(candidate));
  }

  // ---- The threads: each takes the next task, and does it without the lock.

  struct Task {
    Candidate candidate;
    bool in_full = false;
  };

  // Waits while others may still find a candidate. nullopt: the search has ended.
  std::optional<Task> next() {
    Lock lock(mutex_);
    while (true) {
      if (stops_) return std::nullopt;
      if (std::optional<Task> task = take()) {
        ++num_at_work_;
        return task;
      }
      if (num_at_work_ == 0) return std::nullopt;
      changed_.wait(lock);
    }
  }

  std::optional<Task> take() SKEIN_REQUIRES(mutex_) {
    if (is_due()) {  // what may become an answer soon, whatever is bounded below it
      for (const Known known : {Known::kSketch, Known::kLayers}) {
        const Candidates& of = candidates(known);
        if (!of.empty() && of.top().seconds < best_seconds_) return take_from(known);
      }
    }
    const Known* least = nullptr;
    for (const Known& known : kAllKnown) {
      if (candidates(known).empty()) continue;
      if (least == nullptr || IsLater()(candidates(*least).top(), candidates(known).top())) {
        least = &known;
      }
    }
    if (least == nullptr || candidates(*least).top().seconds > worst_seconds()) {
      return std::nullopt;
    }
    return take_from(*least);
  }

  Task take_from(Known known) SKEIN_REQUIRES(mutex_) {
    Task task = {candidates(known).top(), known == Known::kSketch || options_.exhaustive};
    candidates(known).pop();
    return task;
  }

  Candidates& candidates(Known known) SKEIN_REQUIRES(mutex_) {
    return candidates_[static_cast<size_t>(known)];
  }
  void put(Candidate candidate) SKEIN_REQUIRES(mutex_) {
    candidates(candidate.known).push(std::move(candidate));
  }

  bool is_due() const SKEIN_REQUIRES(mutex_) {
    constexpr double kFirstSeconds = 1, kShare = 0.2;  // of the time, for plans in full
    const double now = seconds();
    return now > kFirstSeconds && full_seconds_ < kShare * now * num_threads_;
  }

  // What a layout must not exceed to be among the best.
  double worst_seconds() const SKEIN_REQUIRES(mutex_) {
    return result_.best.size() < options_.num_best
               ? std::numeric_limits<double>::infinity()
               : result_.best[options_.num_best - 1].plan.step.step_seconds;
  }

  void work() {
    omp_set_num_threads(request_.threads);  // OpenMP keeps this per thread
    while (std::optional<Task> task = next()) {
      try {
        task->in_full ? plan(task->candidate) : refine(task->candidate);
      } catch (const Error& error) {
        const Lock lock(mutex_);
        refuse_error(task->candidate.choice, error);
      } catch (...) {
        const Lock lock(mutex_);
        failure_ = std::current_exception();
        stops_ = true;
      }
      const Lock lock(mutex_);
      --num_at_work_;
      changed_.notify_all();
    }
    const Lock lock(mutex_);
    ++num_ended_;
    changed_.notify_all();
  }

  void refine(Candidate& candidate) {
    if (candidate.known == Known::kSizes) {
      const LayoutBounds::Bound bound = bounds_.of_layers(candidate.choice, candidate.layout);
      const Lock lock(mutex_);
      if (refuse_large(candidate.choice, bound.bytes, "at least ")) return;
      candidate.known = Known::kLayers;
      candidate.seconds = std::max(candidate.seconds, bound.seconds);
      put(std::move(candidate));
      return;
    }
    PlanRequest request = request_;
    request.config = config_of(request_, candidate.choice);
    const Plan plan = sketch_plan(request, sketches_);
    const Lock lock(mutex_);
    ++result_.num_sketched;
    if (refuse_unfit(candidate.choice, plan)) return;
    candidate.known = Known::kSketch;
    candidate.seconds = std::max(candidate.seconds, kSketchMargin * plan.step.step_seconds);
    put(std::move(candidate));
  }

  void plan(const Candidate& candidate) {
    PlanRequest request = request_;
    request.config = config_of(request_, candidate.choice);
    const double before = seconds();
    SearchResult::Found found = {request.config, make_plan(request), candidate.order};
    const double took = seconds() - before;
    const Lock lock(mutex_);
    full_seconds_ += took;
    longest_ = std::max(longest_, took);
    ++result_.num_planned;
    if (!refuse_unfit(candidate.choice, found.plan)) insert(std::move(found));
  }

  // ---- The caller's thread.

  void wait_for_end() {
    constexpr double kToldEvery = 0.1;
    double told = 0;
    Lock lock(mutex_);
    while (num_ended_ < num_threads_) {
      changed_.wait_for(lock, std::chrono::duration<double>(kToldEvery));
      // The plans that are under way end within the budget, too.
      if (seconds() + 1.5 * longest_ > options_.seconds) stops_ = true;
      if (!options_.on_progress || stops_ || seconds() < told + kToldEvery) continue;
      told = seconds();
      SearchProgress progress = {.num_layouts = result_.num_layouts,
                                 .num_sketched = result_.num_sketched,
                                 .num_planned = result_.num_planned,
                                 .seconds = seconds()};
      if (!result_.best.empty()) {
        progress.best_seconds = best_seconds_;
        progress.best = layout_text(result_.best.front().config);
      }
      lock.unlock();
      const bool goes_on = options_.on_progress(progress);
      lock.lock();
      if (!goes_on) stops_ = true;
    }
  }

  SearchResult finish() {
    Lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    // Stopped before anything was planned in full: the best sketch, so that there is an answer.
    while (result_.best.empty() && !candidates(Known::kSketch).empty()) {
      const Task task = take_from(Known::kSketch);
      lock.unlock();
      std::optional<Error> refusal;
      try {
        plan(task.candidate);
      } catch (const Error& error) {
        refusal = error;
      }
      lock.lock();
      if (refusal) refuse_error(task.candidate.choice, *refusal);
    }
    for (const Known known : kAllKnown) {
      for (; !candidates(known).empty(); candidates(known).pop()) {
        if (candidates(known).top().seconds <= worst_seconds()) {
          ++result_.num_left;
        } else if (known != Known::kSketch) {
          ++result_.num_slower;
        }
      }
    }
    if (result_.best.size() > options_.num_best) result_.best.resize(options_.num_best);
    result_.seconds = seconds();
    return std::move(result_);
  }

  // ---- What does not fit, and what is best.

  std::string text_of(const LayoutChoice& choice) const {
    return layout_text(config_of(request_, choice));
  }

  void refuse_error(const LayoutChoice& choice, const Error& error) SKEIN_REQUIRES(mutex_) {
    refuse("the passes cannot split it so", fmt::format("{}: {}", text_of(choice), error.what()));
  }

  void refuse(const std::string& reason, const std::string& example) SKEIN_REQUIRES(mutex_) {
    SearchResult::Refused& refused = result_.refused[reason];
    if (refused.count++ == 0) refused.example = example;
  }

  bool refuse_large(const LayoutChoice& choice, const ArenaBytes& bytes, const char* how = "")
      SKEIN_REQUIRES(mutex_) {
    const int64_t excess = std::accumulate(bytes.begin(), bytes.end(), int64_t{0}) - rank_bytes_;
    if (excess <= 0) return false;
    const auto largest = std::max_element(bytes.begin(), bytes.end());
    const std::string name(arena_name(static_cast<Arena>(largest - bytes.begin())));
    refuse("too large, mostly " + name,
           fmt::format("{}: {}too large by {}: {} {}", text_of(choice), how, format_bytes(excess),
                       name, format_bytes(*largest)));
    return true;
  }

  // Checks the device, and the host memory of all ranks of a node.
  bool refuse_unfit(const LayoutChoice& choice, const Plan& plan) SKEIN_REQUIRES(mutex_) {
    if (refuse_large(choice, on_device(plan.fullest()))) return true;
    if (all_fit(plan.memory)) return false;
    const MemoryFit& fit = tightest(plan.memory);
    refuse(fmt::format("too large for {} memory", fit.memory),
           fmt::format("{}: {} ranks of a node need {} of {}", text_of(choice), fit.ranks,
                       format_bytes(fit.needed_bytes),
                       format_bytes(fit.available_bytes - fit.margin_bytes)));
    return true;
  }

  void insert(SearchResult::Found found) SKEIN_REQUIRES(mutex_) {
    auto& best = result_.best;
    const auto place = [](const SearchResult::Found& one) {
      return std::pair(one.plan.step.step_seconds, one.order);
    };
    const auto at =
        std::upper_bound(best.begin(), best.end(), found,
                         [&](const auto& a, const auto& b) { return place(a) < place(b); });
    best.insert(at, std::move(found));
    if (best.size() > options_.num_best) best.pop_back();
    best_seconds_ = best.front().plan.step.step_seconds;
  }

  const PlanRequest& request_;
  const LayoutSearchOptions& options_;
  const int64_t rank_bytes_;
  const Clock::time_point start_ = Clock::now();
  SketchCache sketches_;
  const LayoutBounds bounds_;

  Mutex mutex_;
  ConditionVariable changed_;
  SearchResult result_ SKEIN_GUARDED_BY(mutex_);
  std::array<Candidates, std::size(kAllKnown)> candidates_ SKEIN_GUARDED_BY(mutex_);
  double best_seconds_ SKEIN_GUARDED_BY(mutex_) = std::numeric_limits<double>::infinity();
  double full_seconds_ SKEIN_GUARDED_BY(mutex_) = 0;  // that plans in full took
  double longest_ SKEIN_GUARDED_BY(mutex_) = 0;       // of them
  int num_at_work_ SKEIN_GUARDED_BY(mutex_) = 0;
  const int num_threads_ = omp_get_num_procs();
  int num_ended_ SKEIN_GUARDED_BY(mutex_) = 0;
  bool stops_ SKEIN_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace

SearchResult search_layouts(const PlanRequest& request, const LayoutSearchOptions& options) {
  return Search(request, options).run();
}

}  // namespace skein
