// The protocol of digest.h, for one host.
#include <algorithm>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/log.h"
#include "skein/base/text/visible_text.h"
#include "skein/supervise/rendezvous_store.h"

namespace skein {
namespace {

// A look that comes later than this after the one before does not prove that the records of others
// stood still all the while.
constexpr Millis kLongestGap = 2'000;
constexpr int64_t kLooksAtForgotten = 10;
// Then the list is written again: it may be damaged, or a former leader's that was written late.
constexpr int64_t kLooksAtList = 10;
constexpr Millis kUnreadable = 10'000;

// Without what changes all the time.
HostRecord for_the_list(HostRecord record) {
  record.beat = record.step = 0;
  record.work_us.clear();
  record.message = visible_text(record.message, kMostListedText);
  record.sick = visible_text(record.sick, kMostListedText);
  return record;
}

bool have_same_names(const std::map<std::string, Millis>& a,
                     const std::map<std::string, Millis>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const auto& one, const auto& other) { return one.first == other.first; });
}

class DigestStore : public RendezvousStore {
 public:
  explicit DigestStore(std::unique_ptr<RecordStore> records) : records_(std::move(records)) {}

  void publish(const HostRecord& record) override {
    self_ = record.host;
    records_->write(record);
    beat_ = record.beat;
    // From now on this record speaks for the one that it replaces.
    if (!record.succeeds.empty() && !std::exchange(spoke_for_it_, true)) {
      records_->remove(record.succeeds);
    }
  }

  StoreView look(StoreRole role, Millis now) override {
    StoreView view;
    role = read_digest(view, role, now);
    if (role == StoreRole::kFollow && follow(view, now)) {
      looked_.reset();
      claim_.reset();
    } else {
      const bool leads = role == StoreRole::kLead && claim();
      read_all(view, now, leads);
      if (leads) try_to_write([&] { write_digest(view); });
    }
    view.newest = newest_;
    if (digest_) {
      view.leader = digest_->key.writer;
      view.leader_beat = digest_->host_beat;
    }
    if (list_) view.quiet = list_->quiet;
    return view;
  }

  bool create(const GenerationRecord& generation) override {
    if (!records_->create(generation)) return false;
    if (claim_ && digest_ && digest_->key == *claim_) {  // followers need not wait for a look
      HostDigest next = *digest_;
      next.generation = std::max(next.generation, generation.number);
      try_to_write([&] { write(next); });
    }
    return true;
  }

 private:
  // Returns the role from here on: whoever reads all itself needs no digest, and one that cannot be
  // read for long is written again.
  StoreRole read_digest(StoreView& view, StoreRole role, Millis now) {
    const bool follows = role == StoreRole::kFollow || role == StoreRole::kFollowOrLead;
    std::optional<HostDigest> read;
    try {
      read = records_->digest();
      unread_since_.reset();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) throw;
      if (!unread_since_) unread_since_ = now;
      const auto stagger =
          static_cast<Millis>(chance_of(self_, digests_) * static_cast<double>(kMaxStagger));
      if (!follows) return role;
      if (now - *unread_since_ >= kUnreadable + stagger) return StoreRole::kLead;
      throw;
    }
    if (read &&
        (!digest_ || std::pair(read->key, read->beat) > std::pair(digest_->key, digest_->beat))) {
      view.leader_moved = true;
      digest_ = read;
    }
    if (role != StoreRole::kFollowOrLead) return role;
    return digest_ ? StoreRole::kFollow : StoreRole::kLead;
  }

  // ---- of those who follow

  // False: it has lacked the list for so long that it should read all itself.
  bool follow(StoreView& view, Millis now) {
    view.is_direct = false;
    if (!digest_) return true;
    const auto is_older = [&] {
      return !list_ ||
             std::pair(list_->key, list_->number) < std::pair(digest_->key, digest_->list);
    };
    if (digest_->list > 0 && is_older()) {
      const std::shared_ptr<const DigestList> read = read_list();
      // A cache may show an older one for a while.
      const bool is_newer = read && (!list_ || std::pair(list_->key, list_->number) <
                                                   std::pair(read->key, read->number));
      if (is_newer) list_ = read;
    }
    if (list_) view.hosts = list_->hosts;
    read_generation(digest_->generation);  // where a cache does not have it yet, at the next look
    if (digest_->list == 0 || !is_older()) {
      lacks_list_since_.reset();
    } else if (!lacks_list_since_) {
      lacks_list_since_ = now;
    }
    const bool waits = !lacks_list_since_ || now - *lacks_list_since_ < kHeirs;
    view.is_direct = !waits;
    return waits;
  }

  // Without it the last one will do until the next look.
  std::shared_ptr<const DigestList> read_list() {
    try {
      return records_->digest_list();
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kIo) throw;
      say_once(
          fmt::format("the list of machines in the rendezvous cannot be read: {}", error.what()));
      return nullptr;
    }
  }

  // False: it is not there.
  bool read_generation(int64_t number) {
    if (number <= newest_.number()) return true;
    SharedGeneration read = records_->generation(number);
    if (!read) return false;
    newest_ = std::move(read);
    return true;
  }

  // ---- of those who read all

  struct Known {
    HostRecord record;
    Millis changed = 0;  // of lived_
    Millis unread = 0;   // for which it could not be read since then
  };

  void read_all(StoreView& view, Millis now, bool leads) {
    const Millis passed = looked_ ? std::min(now - *looked_, kLongestGap) : 0;
    lived_ += passed;
    looked_ = now;
    ++looks_;
    read_newest();
    const std::set<std::string> left_out = skipped();
    bool holds_own = self_.empty() || left_out.contains(self_);
    for (HostRecord& record : read_hosts(left_out, view.unread, leads)) {
      holds_own = holds_own || record.host == self_;
      Known& known = known_[record.host];
      if (!known.record.host.empty() && record.beat <= known.record.beat) continue;
      const bool replaces = !record.succeeds.empty() && record.succeeds != self_;
      if (replaces) replaced_.insert(record.succeeds);
      known = {std::move(record), lived_};
    }
    for (const std::string& name : view.unread) {
      if (const auto known = known_.find(name); known != known_.end()) {
        known->second.unread = std::min(known->second.unread + passed, kMostUnread);
      }
    }
    std::vector<HostRecord> hosts;
    hosts.reserve(known_.size());
    for (const auto& [name, known] : known_) {
      if (!replaced_.contains(name)) hosts.push_back(known.record);
    }
    view.hosts = std::move(hosts);
    if (!holds_own) {  // a full disk may be told of no earlier
      fail(ErrorCode::kIo,
           "{} does not hold the record of {} that was written to it: is its disk "
           "full?",
           records_->text(), self_);
    }
  }

  // A long look is one in which others would take the leader for gone.
  std::vector<HostRecord> read_hosts(const std::set<std::string>& left_out,
                                     std::set<std::string>& unread, bool leads) {
    int read = 0;
    return records_->hosts(left_out, unread, [&] {
      if (++read % kReadsABeat != 0 || !leads) return;
      const bool has_list = list_ && list_->key == *claim_;
      const int64_t list = has_list ? list_->number : 0;
      try_to_write(
          [&] { write(HostDigest{.key = *claim_, .list = list, .generation = newest_.number()}); });
    });
  }

  void read_newest() {
    const int64_t number = records_->newest_number();
    if (number < newest_.number()) {
      fail(ErrorCode::kInvalid, "{} held generation {}, and holds it no more: somebody removed it",
           records_->text(), newest_.number());
    }
    if (!read_generation(number)) {
      fail(ErrorCode::kIo, "{}: generation {} was removed while it was read", records_->text(),
           number);
    }
  }

  // Never a member of the newest generation: others go on without it by what is read here.
  std::set<std::string> skipped() const {
    std::set<std::string> names = replaced_;
    for (const auto& [name, known] : known_) {
      const bool is_forgotten =
          lived_ - known.changed - known.unread >= kForgotten && newest_.member(name) == nullptr;
      if (known.record.gone || (is_forgotten && looks_ % kLooksAtForgotten != 0)) {
        names.insert(name);
      }
    }
    return names;
  }

  // Whether this host writes the digest.
  bool claim() {
    if (claim_ && digest_ && digest_->key > *claim_) {
      claim_.reset();
      return false;
    }
    if (!claim_) claim_ = DigestKey{(digest_ ? digest_->key.term : 0) + 1, self_};
    return true;
  }

  void write_digest(const StoreView& view) {
    auto next = std::make_shared<DigestList>();
    next->key = *claim_;
    std::vector<HostRecord> hosts;
    hosts.reserve(view.hosts.size());
    for (const HostRecord& record : view.hosts) hosts.push_back(for_the_list(record));
    next->hosts = std::move(hosts);
    next->quiet = std::make_shared<const std::map<std::string, Millis>>(quiet());
    const bool is_same = list_ && list_->key == *claim_ && list_->number == lists_ &&
                         std::equal(list_->hosts.begin(), list_->hosts.end(), next->hosts.begin(),
                                    next->hosts.end()) &&
                         have_same_names(*list_->quiet, *next->quiet);
    if (!is_same) {
      next->number = ++lists_;  // also where the write fails: it may have taken effect
      records_->write(next);
      list_ = next;
    } else if (looks_ % kLooksAtList == 0) {
      records_->write(list_);
    }
    write(HostDigest{.key = *claim_, .list = list_->number, .generation = newest_.number()});
  }

  // What this host has read is good without it: the others then read all themselves.
  template <typename Write>
  void try_to_write(const Write& write) {
    try {
      write();
    } catch (const Error& error) {
      say_once(fmt::format("the digest for the other machines cannot be written to {}: {}",
                           records_->text(), error.what()));
    }
  }

  void say_once(const std::string& line) {
    if (said_.insert(line).second) log::warn("{}", line);
  }

  void write(HostDigest digest) {
    digest.beat = ++digests_;
    digest.host_beat = beat_;
    records_->write(digest);
    digest_ = std::move(digest);
  }

  std::map<std::string, Millis> quiet() const {
    std::map<std::string, Millis> quiet;
    for (const auto& [name, known] : known_) {
      const Millis time = lived_ - known.changed - known.unread;
      const bool counts = name != self_ && !known.record.gone && !replaced_.contains(name);
      if (counts && time >= kQuiet) quiet[name] = time;
    }
    return quiet;
  }

  const std::unique_ptr<RecordStore> records_;
  std::string self_;
  int64_t beat_ = 0;
  bool spoke_for_it_ = false;
  SharedGeneration newest_;  // a generation never changes, so each is read once

  std::optional<HostDigest> digest_;  // the newest, of whomever
  std::shared_ptr<const DigestList> list_;
  std::optional<DigestKey> claim_;   // under which this host leads
  int64_t lists_ = 0, digests_ = 0;  // that this host has written, or tried to

  std::map<std::string, Known> known_;
  std::set<std::string> replaced_;
  std::optional<Millis> unread_since_;      // the digest
  std::optional<Millis> lacks_list_since_;  // which the digest names
  std::set<std::string> said_;
  Millis lived_ = 0;  // time in which this host read all
  std::optional<Millis> looked_;
  int64_t looks_ = 0;
};

class MemoryStore : public RendezvousStore {
 public:
  void publish(const HostRecord& record) override { view_.hosts = {record}; }
  StoreView look(StoreRole, Millis) override { return view_; }
  bool create(const GenerationRecord& generation) override {
    view_.newest = generation;
    return true;
  }

 private:
  StoreView view_;
};

}  // namespace

std::unique_ptr<RendezvousStore> digest_store(std::unique_ptr<RecordStore> records) {
  return std::make_unique<DigestStore>(std::move(records));
}

std::unique_ptr<RendezvousStore> memory_store() { return std::make_unique<MemoryStore>(); }

}  // namespace skein
