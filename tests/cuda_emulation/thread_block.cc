// The threads of one block, as fibers: each runs until it waits for the others, in an order that is
// shuffled anew each time.
#undef _FORTIFY_SOURCE  // its longjmp refuses to change stacks
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "cuda_emulation.h"
#include "cuda_runtime.h"

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace cuda_emulation {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

struct Warp {
  int live = 0;
  int waiting = 0;
  uint64_t values[32] = {};
};

struct Fiber;
struct Barrier {
  int expected = 0, arrived = 0;
  bool is_odd = false;  // its round
  std::vector<Fiber*> waiting = {};
};

struct Fiber {
  ucontext_t start{};
  jmp_buf where;
  bool begun = false;
  void* stack = nullptr;
  unsigned thread = 0;  // that it runs
};

class Block {
 public:
  void run(const std::function<void()>& body, unsigned num_threads) {
    body_ = &body;
    count_ = live_ = num_threads;
    next_ = 0;
    waiting_.clear();
    barriers_.clear();
    warps_.assign((count_ + 31) / 32, Warp{});
    for (unsigned i = 0; i < count_; ++i) ++warps_[i / 32].live;
    warp_waiting_.assign(warps_.size(), {});
    shuffle_order();
    while (live_ > 0) {
      if (!ready_.empty()) {
        // Nothing promises in which order threads go on after a barrier.
        const size_t pick = random() % ready_.size();
        std::swap(ready_[pick], ready_.back());
        Fiber* fiber = ready_.back();
        ready_.pop_back();
        resume(fiber);
      } else if (next_ < count_) {
        resume(idle_fiber());
      } else {
        die("threads wait at a barrier that others of the block never reach");
      }
    }
  }

  void wait_for_block() {
    waiting_.push_back(current_);
    if (waiting_.size() == live_) release_block();
    yield();
  }

  void wait_for_warp() {
    const unsigned warp = current_->thread / 32;
    warp_waiting_[warp].push_back(current_);
    ++warps_[warp].waiting;
    if (warps_[warp].waiting == warps_[warp].live) release_warp(warp);
    yield();
  }

  void init_barrier(const void* at, int expected) { barriers_[at] = {.expected = expected}; }
  void arrive(const void* at) {
    Barrier& barrier = barrier_at(at);
    if (++barrier.arrived < barrier.expected) return;
    barrier.arrived = 0;
    barrier.is_odd = !barrier.is_odd;
    ready_.insert(ready_.end(), barrier.waiting.begin(), barrier.waiting.end());
    barrier.waiting.clear();
  }
  // Until no odd, or no even, round is the present one.
  void wait_while(const void* at, bool is_odd) {
    Barrier& barrier = barrier_at(at);
    if (barrier.is_odd != is_odd) return;
    barrier.waiting.push_back(current_);
    yield();
  }

  unsigned thread() const { return current_->thread; }
  Warp& warp() { return warps_[current_->thread / 32]; }
  unsigned count() const { return count_; }

 private:
  uint32_t random() {
    seed_ = seed_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(seed_ >> 33);
  }
  Barrier& barrier_at(const void* at) {
    const auto found = barriers_.find(at);
    if (found == barriers_.end()) die("a barrier that the block did not begin");
    return found->second;
  }
  void shuffle_order() {
    order_.resize(count_);
    std::iota(order_.begin(), order_.end(), 0u);
    for (unsigned i = count_; i > 1; --i) std::swap(order_[i - 1], order_[random() % i]);
  }
  void release_block() {
    ready_.insert(ready_.end(), waiting_.begin(), waiting_.end());
    waiting_.clear();
  }
  void release_warp(unsigned warp) {
    auto& fibers = warp_waiting_[warp];
    ready_.insert(ready_.end(), fibers.begin(), fibers.end());
    fibers.clear();
    warps_[warp].waiting = 0;
  }
  Fiber* idle_fiber() {
    if (idle_.empty()) {
      auto fiber = std::make_unique<Fiber>();
      fiber->stack = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (fiber->stack == MAP_FAILED) die("no memory for a thread's stack");
      idle_.push_back(fiber.get());
      fibers_.push_back(std::move(fiber));
    }
    Fiber* fiber = idle_.back();
    idle_.pop_back();
    return fiber;
  }
  void set_index(unsigned thread) {
    threadIdx = {thread % blockDim.x, thread / blockDim.x % blockDim.y,
                 thread / (blockDim.x * blockDim.y)};
  }
  void resume(Fiber* fiber) {
    current_ = fiber;
    if (fiber->begun) set_index(fiber->thread);
    if (_setjmp(scheduler_) != 0) return;
    if (fiber->begun) _longjmp(fiber->where, 1);
    fiber->begun = true;
    ::getcontext(&fiber->start);
    fiber->start.uc_stack.ss_sp = fiber->stack;
    fiber->start.uc_stack.ss_size = kStackBytes;
    ::makecontext(&fiber->start, &Block::enter, 0);
    ::setcontext(&fiber->start);
  }
  void yield() {
    if (_setjmp(current_->where) == 0) _longjmp(scheduler_, 1);
  }
  static void enter();
  // A fiber runs threads until one waits; another fiber then runs the rest.
  void run_threads() {
    for (;;) {
      while (next_ < count_) {
        Fiber* const me = current_;
        me->thread = order_[next_++];
        set_index(me->thread);
        (*body_)();
        current_ = me;
        end_thread(me->thread);
      }
      idle_.push_back(current_);
      yield();
    }
  }
  void end_thread(unsigned thread) {
    --live_;
    Warp& warp = warps_[thread / 32];
    --warp.live;
    warp.values[thread % 32] = 0;
    if (live_ > 0 && waiting_.size() == live_) release_block();
    if (warp.live > 0 && warp.waiting == warp.live) release_warp(thread / 32);
  }

  const std::function<void()>* body_ = nullptr;
  unsigned count_ = 0, live_ = 0, next_ = 0;
  uint64_t seed_ = 1;
  std::vector<unsigned> order_;
  std::vector<Warp> warps_;
  std::map<const void*, Barrier> barriers_;
  std::vector<Fiber*> ready_, waiting_, idle_;
  std::vector<std::vector<Fiber*>> warp_waiting_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  Fiber* current_ = nullptr;
  jmp_buf scheduler_;
};

Block& block() {
  static Block* const the_block = new Block;
  return *the_block;
}

void Block::enter() { block().run_threads(); }

}  // namespace

[[noreturn]] void die(const char* what) {
  std::fprintf(stderr, "cuda_emulation: %s\n", what);
  std::abort();
}

void run_block(const std::function<void()>& thread, unsigned num_threads) {
  block().run(thread, num_threads);
}

void wait_for_block() { block().wait_for_block(); }
void wait_for_warp() { block().wait_for_warp(); }
void init_barrier(const void* at, int expected) { block().init_barrier(at, expected); }
void arrive_at_barrier(const void* at) { block().arrive(at); }
void wait_at_barrier(const void* at, int odd) { block().wait_while(at, odd != 0); }
int lane() { return static_cast<int>(block().thread() % 32); }
int lanes_in_warp() {
  return static_cast<int>(std::min(32u, block().count() - block().thread() / 32 * 32));
}
uint64_t exchange(uint64_t mine, int source) {
  Warp& warp = block().warp();
  warp.values[lane()] = mine;
  wait_for_warp();
  const uint64_t value = warp.values[source & 31];
  wait_for_warp();
  return value;
}

}  // namespace cuda_emulation
