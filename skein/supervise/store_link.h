// This host's record in the store, and its exchanges with the store: one at a time, when the record
// has changed or a look is due.
//
// Beat  the record is written once a beat, and when it has changed
// Cut   a host that cannot exchange with the store for kCutOffShare of `fence` ends its workers:
//       from `fence` on others may train without it
#pragma once

#include <optional>

#include "skein/supervise/rendezvous_store.h"
#include "skein/supervise/supervisor_options.h"

namespace skein {

class StoreLink {
 public:
  static constexpr Millis kRetry = 500;

  // `options` must outlive the link.
  explicit StoreLink(const SupervisorOptions& options);
  void start(Millis now) { last_good_ = now; }

  // What this host says of itself; publish() has changes written at once, else with the next beat.
  HostRecord& record() { return record_; }
  const HostRecord& record() const { return record_; }
  void publish() { changed_ = true; }
  // Whether the store holds the record with this beat.
  bool has_published(int64_t beat) const { return published_ >= beat; }

  // Looks at the store again at `time`, at the latest.
  void look_at(Millis time) { next_ = time; }
  // The exchange to begin now, if any.
  std::optional<StoreCall> begin(StoreRole role, Millis now);
  void succeeded();
  void failed(Millis now);

  // When the last exchange that wrote the record, and succeeded, began.
  Millis last_good() const { return last_good_; }
  // Until when workers may train without another one.
  Millis permitted_until() const;
  // When the next exchange is due; nothing while one is under way.
  std::optional<Millis> next_time() const;

 private:
  const SupervisorOptions& options_;
  HostRecord record_;
  bool changed_ = true;  // the record, since the last exchange began
  bool exchanging_ = false;
  bool writes_ = true;                 // the exchange that began last
  std::optional<Millis> write_began_;  // of the last exchange that wrote, unless it failed
  Millis began_ = 0, last_good_ = 0, next_ = 0;
  int64_t written_beat_ = 0, published_ = 0;
};

}  // namespace skein
