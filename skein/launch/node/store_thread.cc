#include "skein/launch/node/store_thread.h"

#include <pthread.h>

#include <csignal>
#include <deque>
#include <functional>
#include <thread>
#include <utility>

#include "skein/base/exception.h"
#include "skein/base/threads/mutex.h"

namespace skein {
namespace {

void note(const Error& problem, StoreThread::Answer& answer) {
  answer.problem = problem.what();
  answer.refuses = problem.code() == ErrorCode::kUsage;
}

}  // namespace

struct StoreThread::Shared {
  std::unique_ptr<RendezvousStore> store;
  pthread_t owner;
  int wake_signal;

  Mutex mutex;
  ConditionVariable changed;
  std::deque<std::function<std::optional<Answer>()>> calls SKEIN_GUARDED_BY(mutex);
  std::vector<Answer> answers SKEIN_GUARDED_BY(mutex);
  bool ends SKEIN_GUARDED_BY(mutex) = false;

  void ask(std::function<std::optional<Answer>()> call) {
    Lock lock(mutex);
    calls.push_back(std::move(call));
    changed.notify_one();
  }

  void serve() {
    Lock lock(mutex);
    while (true) {
      changed.wait(lock, [this]() SKEIN_REQUIRES(mutex) { return ends || !calls.empty(); });
      if (calls.empty()) return;
      const auto call = std::move(calls.front());
      calls.pop_front();
      lock.unlock();
      std::optional<Answer> answer = call();
      lock.lock();
      // Where the owner is gone, its last words are still to be written.
      if (ends || !answer) continue;
      answers.push_back(*std::move(answer));
      ::pthread_kill(owner, wake_signal);
    }
  }
};

StoreThread::StoreThread(std::unique_ptr<RendezvousStore> store, int wake_signal)
    : shared_(std::make_shared<Shared>()) {
  shared_->store = std::move(store);
  shared_->owner = ::pthread_self();
  shared_->wake_signal = wake_signal;
  std::thread([shared = shared_] { shared->serve(); }).detach();
}

StoreThread::~StoreThread() {
  Lock lock(shared_->mutex);
  shared_->ends = true;
  shared_->changed.notify_one();
}

void StoreThread::ask_to_exchange(const StoreCall& asked) {
  shared_->ask([shared = shared_.get(), asked] {
    Answer answer;
    try {
      answer.view = shared->store->exchange(asked);
    } catch (const std::exception& problem) {
      note(to_error(problem), answer);
    }
    return answer;
  });
}

void StoreThread::ask_to_create(const GenerationRecord& generation) {
  shared_->ask([shared = shared_.get(), generation] {
    Answer answer{.of_exchange = false};
    try {
      answer.created = shared->store->create(generation) ? Created::kYes : Created::kExists;
    } catch (const std::exception& problem) {
      note(to_error(problem), answer);
    }
    return answer;
  });
}

void StoreThread::ask_to_remove(const std::shared_ptr<StoreRoot>& root, const std::string& place) {
  shared_->ask([root, place]() -> std::optional<Answer> {
    remove_place(*root, place);
    return std::nullopt;
  });
}

std::vector<StoreThread::Answer> StoreThread::take_answers() {
  Lock lock(shared_->mutex);
  return std::exchange(shared_->answers, {});
}

}  // namespace skein
