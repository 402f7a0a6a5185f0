#include "skein/replica/newest_whole.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/threads/mutex.h"
#include "skein/checkpoint/save/join_parts.h"
#include "skein/replica/record.h"

namespace skein {
namespace {

OrderedJson to_json(const ReplicaLabel& label) {
  return {label.save, label.number, label.timeline, label.step, label.rank, label.num_ranks};
}

constexpr int64_t kMostNumber = int64_t{1} << 53;
constexpr int64_t kMostRanks = 1'000'000;

ReplicaLabel label_of(const Json& json, const std::string& what) {
  const auto number = [&](size_t i, int64_t most) { return whole_number(json.at(i), most, what); };
  const ReplicaLabel label{json.at(0),
                           number(1, kMostNumber),
                           number(2, kMostNumber),
                           number(3, kMostNumber),
                           static_cast<int32_t>(number(4, kMostRanks)),
                           static_cast<int32_t>(number(5, kMostRanks))};
  if (label.rank < label.num_ranks) return label;
  fail(ErrorCode::kInvalid, "{}: rank {} of {}", what, label.rank, label.num_ranks);
}

std::string name_of(const ReplicaLabel& label) {
  return fmt::format("the copy in memory of what rank {} had after step {}", label.rank,
                     label.step);
}

// The parts of one save: those in this machine's memory, and the others over the network.
class Parts {
 public:
  Parts(const ReplicaSave& save, const ReplicaPlace& place) : save_(save), key_(place.key) {
    for (const int file : place.kept) {
      auto memory = std::make_unique<ReplicaMemory>(file);
      const auto label = memory->label();
      if (!label || label->rank >= std::ssize(save.parts)) continue;
      if (*label != save.parts[label->rank]) continue;  // a roll-back may have saved a step twice
      here_[label->rank] = std::move(memory);
    }
  }

  std::string record(int rank) {
    const auto found = here_.find(rank);
    if (found != here_.end()) return found->second->record();
    return client(rank).read_record(save_.parts[rank]);
  }

  CheckpointSource::Bytes data(int rank, int64_t at, int64_t count) {
    const auto found = here_.find(rank);
    if (found != here_.end()) {
      const auto all = found->second->data();
      if (at > std::ssize(all) || count > std::ssize(all) - at) {
        fail(ErrorCode::kCorrupt, "{} is too short", name_of(save_.parts[rank]));
      }
      return {all.subspan(at, count), {}};
    }
    std::vector<std::byte> own(static_cast<size_t>(count));
    client(rank).read_data(save_.parts[rank], at, own);
    const std::span<const std::byte> bytes = own;  // of the heap, where a move leaves them
    return {bytes, std::move(own)};
  }

 private:
  ReplicaClient& client(int rank) {
    const ReplicaEndpoint& endpoint = save_.endpoints[rank];
    auto& client = clients_[endpoint.address];
    if (!client) client.emplace(endpoint, key_);
    return *client;
  }

  const ReplicaSave save_;
  const ReplicaKey key_;
  std::map<int, std::unique_ptr<ReplicaMemory>> here_;
  std::map<std::string, std::optional<ReplicaClient>> clients_;
};

class ReplicaSource : public CheckpointSource {
 public:
  ReplicaSource(const ReplicaSave& save, const ReplicaPlace& place,
                std::map<std::string, int> rank_of, ReplicaRuns runs)
      : name_(save.name()),
        rank_of_(std::move(rank_of)),
        runs_(std::move(runs)),
        parts_(save, place) {}

  Bytes bytes(const ManifestFile& file, int64_t begin, int64_t count) override {
    const int64_t at = place_of(runs_, file.name, begin, count, name_);
    const Lock lock(mutex_);
    return parts_.data(rank_of_.at(file.name), at, count);
  }
  void forget(const ManifestFile&, std::span<const std::byte>) override {}

 private:
  const std::string name_;
  const std::map<std::string, int> rank_of_;
  const ReplicaRuns runs_;
  Mutex mutex_;
  Parts parts_ SKEIN_GUARDED_BY(mutex_);
};

}  // namespace

std::string ReplicaFindings::text() const {
  OrderedJson labels = OrderedJson::array();
  for (const ReplicaLabel& label : good) labels.push_back(to_json(label));
  return json_text(OrderedJson{{"endpoint", endpoint.text()}, {"good", labels}, {"bad", bad}});
}

ReplicaFindings ReplicaFindings::parse(const std::string& text) {
  const std::string what = "what a rank says of copies in memory";
  const Json json = parse_json(text, what);
  try {
    ReplicaFindings findings{
        ReplicaEndpoint::parse(json.at("endpoint").get<std::string>()), {}, json.at("bad")};
    for (const Json& label : json.at("good")) findings.good.push_back(label_of(label, what));
    return findings;
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalid, "{}: {}", what, error.what());
  }
}

ReplicaFindings look_at_replicas(const ReplicaPlace& place) {
  ReplicaFindings findings{place.endpoint, {}, {}};
  for (size_t i = 0; i < place.kept.size(); ++i) {
    if (static_cast<int>(i) % place.workers != place.worker) continue;
    ReplicaMemory memory(place.kept[i]);
    const auto label = memory.label();
    if (!label) continue;
    const auto good = try_run([&] {
      ReplicaRecord(memory.record(), name_of(*label)).verify(memory.data());
      return true;
    });
    if (good.ok()) {
      findings.good.push_back(*label);
    } else {
      memory.forget();  // nobody on this machine may take it for a good one
      findings.bad.emplace_back(good.error().what());
    }
  }
  return findings;
}

std::string ReplicaSave::name() const { return fmt::format("the copy of step {} in memory", step); }

std::optional<ReplicaSave> newest_whole(std::span<const ReplicaFindings> findings) {
  struct StoredPart {
    ReplicaLabel label;
    ReplicaEndpoint endpoint;
  };
  // Timeline, step, number, name, ranks: what went on after a roll-back goes before what was left.
  using Id = std::tuple<int64_t, int64_t, int64_t, std::string, int32_t>;
  std::map<Id, std::map<int, StoredPart>> saves;
  for (const ReplicaFindings& of_worker : findings) {
    for (const ReplicaLabel& label : of_worker.good) {
      saves[{label.timeline, label.step, label.number, label.save, label.num_ranks}].try_emplace(
          label.rank, StoredPart{label, of_worker.endpoint});
    }
  }
  for (auto it = saves.rbegin(); it != saves.rend(); ++it) {
    const auto& parts = it->second;
    const auto& [timeline, step, number, name, num_ranks] = it->first;
    if (std::ssize(parts) != num_ranks) continue;
    ReplicaSave save{name, timeline, step, {}, {}};
    for (const auto& [rank, found] : parts) {
      save.parts.push_back(found.label);
      save.endpoints.push_back(found.endpoint);
    }
    return save;
  }
  return std::nullopt;
}

int64_t next_number(std::span<const ReplicaFindings> findings,
                    const std::optional<ReplicaSave>& used) {
  int64_t most = 0;
  for (const ReplicaFindings& of_worker : findings) {
    for (const ReplicaLabel& label : of_worker.good) most = std::max(most, label.number);
  }
  const bool would_replace =
      used && replica_slot(most + 1) == replica_slot(used->parts.front().number);
  return most + (would_replace ? 2 : 1);
}

std::string describe_save(const ReplicaSave& save, const ReplicaPlace& place) {
  Parts memory(save, place);
  std::vector<SavePart> parts;
  OrderedJson files = OrderedJson::object();
  for (int rank = 0; rank < static_cast<int>(save.parts.size()); ++rank) {
    ReplicaRecord record(memory.record(rank), name_of(save.parts[rank]));
    for (const auto& [name, runs] : record.runs()) {
      OrderedJson& list = files[name] = {{"rank", rank}, {"runs", OrderedJson::array()}};
      for (const ReplicaRun& run : runs) list["runs"].push_back(to_json(run));
    }
    parts.push_back(record.take_part());
  }
  const Manifest manifest = join_parts(std::move(parts));
  if (manifest.state.step != save.step) {
    fail(ErrorCode::kCorrupt, "{} is of step {}", save.name(), manifest.state.step);
  }
  return exact_json(OrderedJson{{"manifest", manifest_text(manifest)}, {"files", files}},
                    "the description of a copy");
}

std::unique_ptr<CheckpointReader> open_save(const ReplicaSave& save, const ReplicaPlace& place,
                                            const std::string& description) {
  const Json json = parse_json(description, save.name());
  std::map<std::string, int> rank_of;
  ReplicaRuns runs;
  for (const auto& [name, file] : json.at("files").items()) {
    rank_of[name] = file.at("rank");
    for (const Json& run : file.at("runs")) runs[name].push_back(run_of(run, save.name()));
  }
  return std::make_unique<CheckpointReader>(
      std::make_unique<ReplicaSource>(save, place, std::move(rank_of), std::move(runs)),
      parse_manifest(json.at("manifest").get<std::string>(), save.name()), save.name());
}

}  // namespace skein
