// How the supervisors of a run see each other without each reading the records of all.
//
// One of them, the leader, reads every record at each of its looks and writes two more:
//
//   digest        small, written at each look: who leads, since which term, a beat, the newest
//                 generation, the number of the list
//   digest-hosts  the list: all records without what changes all the time (beats, steps, times of
//                 work), and the hosts that are quiet: whose records have not changed for kQuiet.
//                 Written when one of these changes, before the digest that names it
//
// All others, the followers, read the digest at each look, and the list and a generation when the
// digest names a newer one. So of n hosts a look costs
//
//   a follower   1 read, and 1 write a beat
//   the leader   n reads of records, 2 listings, 1 read and 1 write of the digest
//   on average   below 4 calls, whatever n is
//
// Looks     a beat apart while training or while nothing has changed for long; in between kPerHost
//           for each host, at least `poll` and at most a beat, so that a leader's reads a second
//           have a bound. From kJitterFrom hosts on they are spread by a tenth either way
// Term      (term, writer) orders digests. Who begins to lead takes a term above all that it has
//           seen; a leader that meets a higher one follows. Two leaders at once cost calls, and
//           nothing else
// Lead      whose turn it is (membership.h), as far as it knows; at the start, where there is no
//           digest, who first finds none (large runs draw a delay). Where the digest has not moved
//           for kHeirs the first kNumHeirs in turn read all themselves; after `silence` the next in
//           turn leads, and each one behind it takes over kStagger later, should nobody have
// Safety    does not rest on the digest. A generation is created by a host that has read all
//           records itself; for the fence it counts only time in which it did so, and no record
//           that it could not read. A digest that is old, wrong or missing costs time: followers
//           take hosts for alive that are not
// Liveness  nor that. A follower that lacks the list which the digest names for kHeirs reads all
//           records itself until it has it. A leader that cannot write the digest says so and reads
//           on. It writes the digest again after each kReadsABeat records of one look, so that it
//           does not seem to be gone while it reads
// Machines  of versions without it read all records themselves and write no digest: they meet with
//           newer ones, at their former cost
// Skipped   by the leader: records of hosts that are gone or replaced, for good; at nine of ten
//           looks those of others that have been quiet for kForgotten, unless they are members of
//           the newest generation
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "skein/supervise/store_view.h"

namespace skein {

constexpr Millis kQuiet = 3'000, kForgotten = 60'000;
constexpr Millis kHeirs = 2'500, kStagger = 250, kMaxStagger = 10'000;
constexpr int kNumHeirs = 4;
// For so long a record that is there and cannot be read does not count as one that stands still.
constexpr Millis kMostUnread = 120'000;
constexpr Millis kPerHost = 2;
constexpr size_t kJitterFrom = 16;
constexpr int kReadsABeat = 500;
// Of the texts of a record in the list, so that the list of 4,096 hosts fits a value of etcd.
constexpr int64_t kMostListedText = 120;

// How a host looks at the store.
enum class StoreRole : uint8_t {
  kFollow,        // the digest
  kFollowOrLead,  // the same; where there is none it leads
  kHeir,          // every record
  kLead,          // every record, and it writes the digest
};

struct DigestKey {
  int64_t term = 0;
  std::string writer;
  friend auto operator<=>(const DigestKey&, const DigestKey&) = default;
};

struct HostDigest {
  DigestKey key;
  int64_t beat = 0;        // of the digest: grows with every write
  int64_t host_beat = 0;   // HostRecord::beat of the writer
  int64_t list = 0;        // number of the newest list; 0: there is none yet
  int64_t generation = 0;  // number of the newest generation; 0: there is none yet
};

struct DigestList {
  DigestKey key;
  int64_t number = 0;
  HostRecords hosts;
  std::shared_ptr<const std::map<std::string, Millis>> quiet;
};

// From 0 to below 1, always the same for the same host and number.
double chance_of(const std::string& host, int64_t number);

OrderedJson digest_to_json(const HostDigest& digest);
HostDigest digest_from_json(const Json& json, const std::string& what);
OrderedJson digest_list_to_json(const DigestList& list);
DigestList digest_list_from_json(const Json& json, const std::string& what);

}  // namespace skein
