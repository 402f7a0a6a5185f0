#include "skein/plan/search/layout_search.h"

#include <omp.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <numeric>
#include <optional>
#include <queue>
#include <set>
#include <thread>

#include "skein/base/error.h"
#include "skein/base/machine/cores.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/mutex.h"
#include "skein/plan/search/fastest_plans.h"
#include "skein/plan/search/layout_bounds.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;

// A sketch may be slower than the plan, so this share of its time is the bound: it knows neither
// short-lived memory nor buckets of gradients of several layers, and ZeRO 3's gathers of a single
// layer hide less than those of many. The least shares seen of 1,400 layouts of small models, where
// single layers weigh most, are 0.984 and, with ZeRO 3, 0.920.
double sketch_margin(const LayoutChoice& choice) { return choice.zero == 3 ? 0.91 : 0.98; }

// What the bound of a layout comes from.
enum class BoundBasis { kSizes, kLayers, kSketch };
constexpr BoundBasis kBoundBases[] = {BoundBasis::kSizes, BoundBasis::kLayers, BoundBasis::kSketch};

struct LayoutCandidate {
  LayoutChoice choice;
  ParallelLayout layout;
  double seconds = 0;  // a lower bound
  int64_t order = 0;   // of those that are equal
  BoundBasis basis = BoundBasis::kSizes;
};

BoundOrder bound_of(const LayoutCandidate& of) { return {of.seconds, of.order}; }

struct IsLater {
  bool operator()(const LayoutCandidate& a, const LayoutCandidate& b) const {
    return bound_of(a) > bound_of(b);
  }
};

// From the least bound on.
using Candidates = std::priority_queue<LayoutCandidate, std::vector<LayoutCandidate>, IsLater>;

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

class LayoutSearch {
 public:
  LayoutSearch(const PlanRequest& request, const LayoutSearchOptions& options)
      : request_(request),
        options_(options),
        rank_bytes_(memory_of_rank(request)),
        bounds_(request, sketches_),
        plans_(options.num_best) {}

  SearchResult run() {
    enumerate();
    std::vector<std::thread> threads;
    for (int i = 0; i < num_threads_; ++i) {
      threads.emplace_back([this, i] {
        omp_set_num_threads(request_.threads);  // OpenMP keeps this per thread
        if (i == 0) plan_own();
        work();
      });
    }
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
    LayoutCandidate candidate = {
        .choice = choice, .layout = layout, .order = result_.num_layouts++};
    if (!options_.exhaustive) {
      const LayoutBounds::CostBound bound = bounds_.of_sizes(choice, layout);
      if (refuse_large(choice, bound.bytes, "at least ")) return;
      candidate.seconds = bound.seconds;
    }
    put(std::move(candidate));
  }

  // ---- The threads: each takes the next task, and does it without the lock.

  struct SearchTask {
    LayoutCandidate candidate;
    bool in_full = false;
  };

  // Waits while others may still find a candidate. nullopt: the search has ended.
  std::optional<SearchTask> next() {
    Lock lock(mutex_);
    while (true) {
      if (stops_) return std::nullopt;
      if (std::optional<SearchTask> task = take()) {
        at_work_.insert(bound_of(task->candidate));
        return task;
      }
      if (at_work_.empty()) return std::nullopt;
      changed_.wait(lock);
    }
  }

  std::optional<SearchTask> take() SKEIN_REQUIRES(mutex_) {
    if (is_due()) {  // what may become an answer soon, whatever is bounded below it
      for (const BoundBasis basis : {BoundBasis::kSketch, BoundBasis::kLayers}) {
        const Candidates& of = candidates(basis);
        if (!of.empty() && of.top().seconds < plans_.fastest_seconds()) return take_from(basis);
      }
    }
    const BoundBasis* least = nullptr;
    for (const BoundBasis& basis : kBoundBases) {
      if (candidates(basis).empty()) continue;
      if (least == nullptr || IsLater()(candidates(*least).top(), candidates(basis).top())) {
        least = &basis;
      }
    }
    if (least == nullptr || candidates(*least).top().seconds > plans_.slowest_seconds()) {
      return std::nullopt;
    }
    return take_from(*least);
  }

  SearchTask take_from(BoundBasis basis) SKEIN_REQUIRES(mutex_) {
    SearchTask task = {candidates(basis).top(),
                       basis == BoundBasis::kSketch || options_.exhaustive};
    candidates(basis).pop();
    return task;
  }

  Candidates& candidates(BoundBasis basis) SKEIN_REQUIRES(mutex_) {
    return candidates_[static_cast<size_t>(basis)];
  }
  void put(LayoutCandidate candidate) SKEIN_REQUIRES(mutex_) {
    candidates(candidate.basis).push(std::move(candidate));
  }

  bool is_due() const SKEIN_REQUIRES(mutex_) {
    constexpr double kFirstSeconds = 1, kShare = 0.2;  // of the time, for plans in full
    const double now = seconds();
    return now > kFirstSeconds && full_seconds_ < kShare * now * num_threads_;
  }

  void plan_own() {
    try {
      Plan own = make_plan(request_);
      const Lock lock(mutex_);
      result_.own = std::move(own);
    } catch (const Error& error) {
      const Lock lock(mutex_);
      result_.why_no_own = error.what();
    } catch (...) {
      const Lock lock(mutex_);
      failure_ = std::current_exception();
      stops_ = true;
    }
  }

  void work() {
    while (std::optional<SearchTask> task = next()) {
      const BoundOrder bound = bound_of(task->candidate);  // refining changes it
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
      at_work_.erase(at_work_.find(bound));
      plans_.decide(least_undecided());
      changed_.notify_all();
    }
    const Lock lock(mutex_);
    ++num_ended_;
    changed_.notify_all();
  }

  void refine(LayoutCandidate& candidate) {
    if (candidate.basis == BoundBasis::kSizes) {
      const LayoutBounds::CostBound bound = bounds_.of_layers(candidate.choice, candidate.layout);
      const Lock lock(mutex_);
      if (refuse_large(candidate.choice, bound.bytes, "at least ")) return;
      candidate.basis = BoundBasis::kLayers;
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
    candidate.basis = BoundBasis::kSketch;
    candidate.seconds =
        std::max(candidate.seconds, sketch_margin(candidate.choice) * plan.step.step_seconds);
    put(std::move(candidate));
  }

  void plan(const LayoutCandidate& candidate) {
    PlanRequest request = request_;
    request.config = config_of(request_, candidate.choice);
    const double before = seconds();
    SearchResult::FoundLayout found = {request.config, make_plan(request), candidate.order};
    const double took = seconds() - before;
    const Lock lock(mutex_);
    full_seconds_ += took;
    longest_ = std::max(longest_, took);
    ++result_.num_planned;
    if (!refuse_unfit(candidate.choice, found.plan)) {
      plans_.add(bound_of(candidate), std::move(found));
    }
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
      if (plans_.has_any()) {
        progress.best_seconds = plans_.fastest_seconds();
        progress.best = plans_.fastest_text();
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
    const bool is_complete = least_undecided().first > plans_.slowest_seconds();
    // Stopped before anything was planned in full: the best sketch, so that there is an answer.
    while (!plans_.has_any() && !candidates(BoundBasis::kSketch).empty()) {
      const SearchTask task = take_from(BoundBasis::kSketch);
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
    if (!is_complete) plans_.decide_all();
    for (const BoundBasis basis : kBoundBases) {
      for (; !candidates(basis).empty(); candidates(basis).pop()) {
        if (candidates(basis).top().seconds <= plans_.slowest_seconds()) {
          ++result_.num_left;
        } else if (basis != BoundBasis::kSketch) {
          ++result_.num_slower;
        }
      }
    }
    result_.best = plans_.take_list();
    result_.seconds = seconds();
    return std::move(result_);
  }

  // No layout that is not yet decided has a smaller bound.
  BoundOrder least_undecided() const SKEIN_REQUIRES(mutex_) {
    BoundOrder least = at_work_.empty() ? kBehindAll : *at_work_.begin();
    for (const Candidates& of : candidates_) {
      if (!of.empty()) least = std::min(least, bound_of(of.top()));
    }
    return least;
  }

  // ---- What does not fit.

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

  const PlanRequest& request_;
  const LayoutSearchOptions& options_;
  const int64_t rank_bytes_;
  const Clock::time_point start_ = Clock::now();
  SketchCache sketches_;
  const LayoutBounds bounds_;

  Mutex mutex_;
  ConditionVariable changed_;
  SearchResult result_ SKEIN_GUARDED_BY(mutex_);
  std::array<Candidates, std::size(kBoundBases)> candidates_ SKEIN_GUARDED_BY(mutex_);
  std::multiset<BoundOrder> at_work_ SKEIN_GUARDED_BY(mutex_);
  FastestPlans plans_ SKEIN_GUARDED_BY(mutex_);
  double full_seconds_ SKEIN_GUARDED_BY(mutex_) = 0;  // that plans in full took
  double longest_ SKEIN_GUARDED_BY(mutex_) = 0;       // of them
  const int num_threads_ = num_cores();
  int num_ended_ SKEIN_GUARDED_BY(mutex_) = 0;
  bool stops_ SKEIN_GUARDED_BY(mutex_) = false;
  std::exception_ptr failure_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace

SearchResult search_layouts(const PlanRequest& request, const LayoutSearchOptions& options) {
  return LayoutSearch(request, options).run();
}

}  // namespace skein
