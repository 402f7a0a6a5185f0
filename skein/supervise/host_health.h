// Whether this host is fit to train.
//
// Check  a host checks itself before each generation, while hosts gather or workers end. What is
//        found wrong goes to the store; the host is left out, and checks itself again, ever less
//        often
// Wrong bits of a worker's memory or arithmetic may have been an accident: the step is done again.
//        If they come back soon, or for the third time, they are the host's: it is sick for good
#pragma once

#include <optional>
#include <string>

#include "skein/supervise/action.h"
#include "skein/supervise/store_link.h"

namespace skein {

// Wrong bits are the host's where they come back after fewer steps, or so many times in all.
constexpr int64_t kSoonWrongAgain = 100;
constexpr int kTooOftenWrong = 3;

class HostHealth {
 public:
  // All must outlive this object. It writes `sick` and `checked` of the link's record.
  HostHealth(const SupervisorOptions& options, StoreLink& link, Actions& actions)
      : options_(options), link_(link), actions_(actions) {}

  // `due`: the generation before which this host should have checked itself by now; 0: it need not.
  void watch(int64_t due, Millis now);
  // What check number `check` found wrong; "": nothing. False if it comes too late.
  bool checked(int64_t check, const std::string& problem, Millis now);
  // A worker ended by wrong bits.
  void note_wrong_bits(const std::string& message);
  // When watch() is due at the latest; nothing: it is not.
  std::optional<Millis> next_time() const { return check_ends_at_; }

 private:
  void note(const std::string& problem, Millis now);

  const SupervisorOptions& options_;
  StoreLink& link_;
  Actions& actions_;
  int64_t check_ = 0;                    // the number of the last one
  std::optional<Millis> check_ends_at_;  // of the one under way
  int64_t checks_for_ = 0;               // the generation before which it was due
  int times_sick_ = 0;                   // not forgotten yet
  Millis sick_since_ = 0;                // when it was last found
  Millis recheck_at_ = 0;
  int times_wrong_ = 0;  // wrong bits
  int64_t wrong_step_ = 0;
  bool is_broken_ = false;  // sick, whatever a check says
};

}  // namespace skein
