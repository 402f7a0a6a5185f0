// The thread that runs a TextEngine for requests of other threads.
//
// Groups   what one request asks for, some texts, is taken or refused as a whole, and cancelled as
//          a whole. Callbacks of its texts run on the loop's thread, and must not throw
// Change   another engine takes the place of this one when the texts under way have ended; those
//          that wait are given to the new one
// Errors   an exception of the engine itself ends the loop: is_broken() says so, and every group
//          is dropped without its callbacks
// Threads  all methods from any thread
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "skein/infer/engine.h"

namespace skein {

class EngineLoop {
 public:
  using MakeEngine = std::function<std::unique_ptr<TextEngine>()>;
  // `make` is called on the loop's thread, where kernels run (OpenMP's settings are a thread's);
  // what it throws is thrown here. `most_waiting`: texts that have not begun; a group beyond is
  // refused, unless none waits.
  EngineLoop(const MakeEngine& make, int64_t most_waiting);
  ~EngineLoop();  // drops what is under way
  EngineLoop(const EngineLoop&) = delete;
  EngineLoop& operator=(const EngineLoop&) = delete;

  // A number by which the group can be cancelled; nothing: too many texts wait, or the loop stops.
  // `on_error` is called in place of further callbacks where a text is refused by the engine.
  std::optional<int64_t> submit(std::vector<TextRequest> texts,
                                std::function<void(const std::string&)> on_error);
  void cancel(int64_t group);

  // `make` is called on the loop's thread; what it throws is thrown here, and the engine stays.
  void change_engine(const MakeEngine& make);

  // Accepts no more, and returns when all texts have ended, or after `grace`.
  void stop(std::chrono::milliseconds grace);

  bool is_broken() const;
  struct Counts {
    int64_t waiting = 0, running = 0;
    int64_t cache_positions = 0, cache_positions_held = 0;
    TextEngine::Counts engine;  // since the loop began, of all engines
    int64_t groups_refused = 0, groups_cancelled = 0;
  };
  Counts counts() const;

 private:
  struct Group {
    std::vector<TextRequest> texts;
    std::function<void(const std::string&)> on_error;
  };
  struct Change {
    const MakeEngine& make;
    std::exception_ptr error;
    bool is_done = false;
  };
  void run();
  bool take_orders(std::unique_lock<std::mutex>& lock);
  void begin(int64_t number, Group group);
  void end_text(int64_t number);
  void change(std::unique_lock<std::mutex>& lock);
  void note_counts();

  std::unique_ptr<TextEngine> engine_;  // of the loop's thread
  const int64_t most_waiting_;
  // Of the loop's thread: the engine's numbers of the texts of each group, and how many have not
  // ended.
  struct Begun {
    std::vector<int64_t> texts;
    int64_t num_left = 0;
  };
  std::map<int64_t, Begun> begun_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<int64_t, Group>> submitted_;
  int64_t num_submitted_ = 0;  // texts of submitted_
  std::vector<int64_t> cancelled_;
  Change* change_ = nullptr;
  int64_t last_number_ = 0;
  bool is_stopping_ = false, is_dropping_ = false, is_broken_ = false, has_ended_ = false;
  Counts counts_;
  TextEngine::Counts of_earlier_engines_;
  std::thread thread_;
};

}  // namespace skein
