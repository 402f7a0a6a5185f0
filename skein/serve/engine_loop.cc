#include "skein/serve/engine_loop.h"

#include <algorithm>
#include <future>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/log.h"

namespace skein {

EngineLoop::EngineLoop(const MakeEngine& make, int64_t most_waiting) : most_waiting_(most_waiting) {
  std::promise<void> made;
  thread_ = std::thread([this, &make, &made] {
    try {
      engine_ = make();
    } catch (...) {
      made.set_exception(std::current_exception());
      return;
    }
    made.set_value();
    run();
  });
  try {
    made.get_future().get();
  } catch (...) {
    thread_.join();
    throw;
  }
}

EngineLoop::~EngineLoop() {
  {
    const std::lock_guard lock(mutex_);
    is_stopping_ = is_dropping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::optional<int64_t> EngineLoop::submit(std::vector<TextRequest> texts,
                                          std::function<void(const std::string&)> on_error) {
  const std::lock_guard lock(mutex_);
  const auto size = std::ssize(texts);
  const int64_t waiting = counts_.waiting + num_submitted_;
  // One group alone may be larger than the queue.
  const bool is_full = waiting > 0 && waiting + size > most_waiting_;
  if (is_stopping_ || is_broken_ || is_full) {
    ++counts_.groups_refused;
    return std::nullopt;
  }
  submitted_.emplace_back(++last_number_, Group{std::move(texts), std::move(on_error)});
  num_submitted_ += size;
  changed_.notify_all();
  return last_number_;
}

void EngineLoop::cancel(int64_t group) {
  Group dropped;  // destroyed outside the lock
  const std::lock_guard lock(mutex_);
  const auto waiting =
      std::find_if(submitted_.begin(), submitted_.end(),
                   [&](const auto& submitted) { return submitted.first == group; });
  if (waiting != submitted_.end()) {
    num_submitted_ -= std::ssize(waiting->second.texts);
    dropped = std::move(waiting->second);
    submitted_.erase(waiting);
    ++counts_.groups_cancelled;
  } else {
    cancelled_.push_back(group);
  }
  changed_.notify_all();
}

void EngineLoop::change_engine(const MakeEngine& make) {
  Change change{make, nullptr, false};
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return change_ == nullptr || has_ended_; });
  if (has_ended_) fail(ErrorCode::kBusy, "the server stops: the model is not loaded again");
  change_ = &change;
  changed_.notify_all();
  changed_.wait(lock, [&] { return change.is_done || has_ended_; });
  change_ = nullptr;
  changed_.notify_all();
  if (change.error) std::rethrow_exception(change.error);
  if (!change.is_done) fail(ErrorCode::kBusy, "the server stops: the model is not loaded again");
}

void EngineLoop::stop(std::chrono::milliseconds grace) {
  std::unique_lock lock(mutex_);
  is_stopping_ = true;
  changed_.notify_all();
  changed_.wait_for(lock, grace, [&] { return has_ended_; });
  is_dropping_ = true;
  changed_.notify_all();
  changed_.wait(lock, [&] { return has_ended_; });
}

bool EngineLoop::is_broken() const {
  const std::lock_guard lock(mutex_);
  return is_broken_;
}

EngineLoop::Counts EngineLoop::counts() const {
  const std::lock_guard lock(mutex_);
  Counts counts = counts_;
  counts.waiting += num_submitted_;
  return counts;
}

void EngineLoop::run() {
  std::unique_lock lock(mutex_);
  try {
    while (take_orders(lock)) {
      lock.unlock();
      engine_->step();
      lock.lock();
      note_counts();
    }
  } catch (const std::exception& error) {
    if (!lock.owns_lock()) lock.lock();
    is_broken_ = true;
    log::error("the engine of the server has failed: {}", error.what());
  }
  auto dropped = std::exchange(submitted_, {});
  num_submitted_ = 0;
  lock.unlock();
  dropped.clear();  // with their callbacks, which may come back here
  begun_.clear();
  engine_.reset();
  lock.lock();
  has_ended_ = true;
  changed_.notify_all();
}

// Returns with the lock, and true while there is something to run.
bool EngineLoop::take_orders(std::unique_lock<std::mutex>& lock) {
  while (!is_dropping_) {
    for (const int64_t group : std::exchange(cancelled_, {})) {
      const auto found = begun_.find(group);
      if (found == begun_.end()) continue;
      lock.unlock();
      for (const int64_t text : found->second.texts) engine_->cancel(text);
      begun_.erase(found);
      lock.lock();
      ++counts_.groups_cancelled;
    }
    if (change_ != nullptr && !change_->is_done) {
      if (engine_->num_running() > 0 || engine_->num_waiting() > 0) return true;
      change(lock);
      continue;
    }
    if (!submitted_.empty()) {
      auto [number, group] = std::move(submitted_.front());
      submitted_.pop_front();
      num_submitted_ -= std::ssize(group.texts);
      lock.unlock();
      begin(number, std::move(group));
      lock.lock();
      note_counts();
      continue;
    }
    note_counts();
    if (!begun_.empty()) return true;
    if (is_stopping_) return false;
    changed_.wait(lock);
  }
  return false;
}

void EngineLoop::begin(int64_t number, Group group) {
  Begun begun;
  begun.num_left = std::ssize(group.texts);
  begun_[number] = std::move(begun);
  for (TextRequest& text : group.texts) {
    text.on_end = [this, number, on_end = std::move(text.on_end)] {
      if (on_end) on_end();
      end_text(number);
    };
    try {
      const int64_t in_engine = engine_->add(std::move(text));
      begun_[number].texts.push_back(in_engine);
    } catch (const Error& error) {
      for (const int64_t added : begun_[number].texts) engine_->cancel(added);
      begun_.erase(number);
      group.on_error(error.what());
      return;
    }
  }
}

void EngineLoop::end_text(int64_t number) {
  const auto found = begun_.find(number);
  if (found != begun_.end() && --found->second.num_left == 0) begun_.erase(found);
}

// The engine has no texts.
void EngineLoop::change(std::unique_lock<std::mutex>& lock) {
  Change& change = *change_;
  lock.unlock();
  std::unique_ptr<TextEngine> made;
  std::exception_ptr error;
  try {
    made = change.make();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  if (made) {
    const TextEngine::Counts& counts = engine_->counts();
    of_earlier_engines_.steps += counts.steps;
    of_earlier_engines_.tokens_read += counts.tokens_read;
    of_earlier_engines_.tokens_shared += counts.tokens_shared;
    of_earlier_engines_.tokens_made += counts.tokens_made;
    engine_.swap(made);
    lock.unlock();
    made.reset();  // takes a while, in which others want the lock
    lock.lock();
  }
  change.error = error;
  change.is_done = true;
  changed_.notify_all();
}

void EngineLoop::note_counts() {
  counts_.waiting = engine_->num_waiting();
  counts_.running = engine_->num_running();
  counts_.cache_positions = engine_->cache_positions();
  counts_.cache_positions_held = engine_->cache_positions_held();
  counts_.engine = engine_->counts();
  counts_.engine.steps += of_earlier_engines_.steps;
  counts_.engine.tokens_read += of_earlier_engines_.tokens_read;
  counts_.engine.tokens_shared += of_earlier_engines_.tokens_shared;
  counts_.engine.tokens_made += of_earlier_engines_.tokens_made;
}

}  // namespace skein
