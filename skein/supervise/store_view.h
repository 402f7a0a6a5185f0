// What a supervisor sees in the rendezvous store at one look.
//
// Threads  copies share what they hold; a shared part is never changed, so copies may be read by
//          several threads
// Cost     of a copy: none that grows with the number of hosts
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "skein/supervise/records.h"

namespace skein {

// A list of records that copies share until one of them is to change.
class HostRecords {
 public:
  HostRecords() = default;
  HostRecords(std::vector<HostRecord> records)  // NOLINT: it is the same list
      : records_(std::make_shared<std::vector<HostRecord>>(std::move(records))) {}
  HostRecords(std::initializer_list<HostRecord> records)
      : HostRecords(std::vector<HostRecord>(records)) {}

  const HostRecord* data() const { return records_ ? records_->data() : nullptr; }
  size_t size() const { return records_ ? records_->size() : 0; }
  bool empty() const { return size() == 0; }
  const HostRecord* begin() const { return data(); }
  const HostRecord* end() const { return data() + size(); }
  const HostRecord& operator[](size_t index) const { return data()[index]; }
  bool is_same_list(const HostRecords& other) const { return records_ == other.records_; }

  // A list of its own, to be changed before the next copy.
  std::vector<HostRecord>& change() {
    if (!records_) records_ = std::make_shared<std::vector<HostRecord>>();
    if (records_.use_count() > 1) records_ = std::make_shared<std::vector<HostRecord>>(*records_);
    return *records_;
  }

 private:
  std::shared_ptr<std::vector<HostRecord>> records_;
};

// A generation, or none. Members are found by name in O(log members).
class SharedGeneration {
 public:
  SharedGeneration() = default;
  SharedGeneration(std::nullopt_t) {}         // NOLINT: none
  SharedGeneration(GenerationRecord record);  // NOLINT: the same record

  explicit operator bool() const { return held_ != nullptr; }
  const GenerationRecord& operator*() const { return held_->record; }
  const GenerationRecord* operator->() const { return &held_->record; }
  const GenerationRecord::Member* member(const std::string& host) const;
  int64_t number() const { return held_ ? held_->record.number : 0; }

 private:
  struct Held {
    GenerationRecord record;
    std::vector<size_t> by_name;  // of members
  };
  std::shared_ptr<const Held> held_;
};

struct StoreView {
  HostRecords hosts;        // by name, ascending: sort()
  SharedGeneration newest;  // the generation with the highest number

  // True: this host has read every record itself. False: `hosts` is the list of the leader, without
  // beats, steps and times of work (digest.h).
  bool is_direct = true;
  // The host whose digest is the newest, or "": nobody has written any.
  std::string leader;
  int64_t leader_beat = 0;    // HostRecord::beat, as the digest says
  bool leader_moved = false;  // the digest is newer than at the look before
  // Where it is direct: hosts whose records are there and could not be read this time.
  std::set<std::string> unread;
  // Of hosts whose records do not change: for how long when the list was written.
  std::shared_ptr<const std::map<std::string, Millis>> quiet;

  void sort();

  const HostRecord* host(const std::string& name) const;  // null: there is no such record
};

}  // namespace skein
