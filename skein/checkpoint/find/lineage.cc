#include "skein/checkpoint/find/lineage.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/checkpoint/find/best_checkpoint.h"
#include "skein/checkpoint/format/manifest.h"
#include "skein/checkpoint/format/stored_file.h"

namespace skein {
namespace {

constexpr int64_t kHeadBytes = int64_t{64} << 10;

// The value on the line of `key`, as manifest_text writes it; nothing if there is no such line.
std::optional<std::string> value_of(const std::string& head, std::string_view key) {
  const std::string before = fmt::format("\n\"{}\": ", key);
  const size_t begin = head.find(before);
  if (begin == head.npos) return std::nullopt;
  const size_t end = head.find(",\n", begin + before.size());
  if (end == head.npos) return std::nullopt;
  return head.substr(begin + before.size(), end - begin - before.size());
}

// The parent's timeline, if it is known; nothing if it is elsewhere, or gone.
const Timeline* parent_of(const Timeline& timeline, const std::vector<CheckpointHead>& heads) {
  if (!timeline.parent || !timeline.parent->lies_beside()) return nullptr;
  for (const CheckpointHead& head : heads) {
    const auto& other = head.timeline;
    if (other && other->run_id == timeline.parent->run_id && other->number < timeline.number) {
      return &*other;
    }
  }
  return nullptr;
}

const CheckpointHead* newest_timeline(const std::vector<CheckpointHead>& heads) {
  const CheckpointHead* newest = nullptr;
  for (const CheckpointHead& head : heads) {
    if (!head.timeline) continue;
    const bool knows_more = newest != nullptr && newest->timeline->run_id.empty() &&
                            same_timeline(*head.timeline, *newest->timeline);  // of an old run
    if (newest == nullptr || knows_more || head.timeline->number > newest->timeline->number) {
      newest = &head;
    }
  }
  return newest;
}

std::optional<Error> conflict_with(const CheckpointHead& newest,
                                   const std::vector<CheckpointHead>& heads) {
  for (const CheckpointHead& head : heads) {
    if (!head.timeline || head.timeline->number != newest.timeline->number ||
        same_timeline(*head.timeline, *newest.timeline)) {
      continue;
    }
    return Error(ErrorCode::kUsage,
                 fmt::format("{} and {} are checkpoints of two runs in one folder, and neither "
                             "began from the other: name the one to continue from (run.resume = "
                             "its path), or move the others away",
                             newest.info.path.string(), head.info.path.string()));
  }
  return std::nullopt;
}

}  // namespace

bool is_read_error(const Error& error) { return error.code() == ErrorCode::kIo; }

Timeline read_timeline(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "manifest.json";
  const StoredFile file(path);
  const std::string head = file.text(kHeadBytes);
  if (const auto value = value_of(head, "timeline")) {
    const std::string where = path.string() + ": timeline";
    return parse_timeline(parse_json(*value, where), where);
  }
  if (head.find("\n\"lanes\": ") != head.npos) return {};  // a timeline would come before them
  return parse_manifest(file.text(), path.string()).state.timeline;
}

Json read_validation(const fs::path& checkpoint) {
  const fs::path path = checkpoint / "manifest.json";
  const auto value = value_of(StoredFile(path).text(kHeadBytes), "validation");
  return value ? parse_json(*value, path.string() + ": validation") : Json();
}

std::vector<CheckpointHead> read_heads(const fs::path& dir) {
  std::vector<CheckpointHead> heads;
  for (CheckpointInfo& info : list_checkpoints(dir)) {
    CheckpointHead head{std::move(info), std::nullopt};
    const Result<Timeline> timeline = try_run([&] { return read_timeline(head.info.path); });
    if (timeline.ok()) {
      head.timeline = Result<Timeline>(timeline).value();
    } else if (is_read_error(timeline.error())) {
      throw timeline.error();
    }
    heads.push_back(std::move(head));
  }
  return heads;
}

Lineage lineage_of(const fs::path& dir) { return lineage_of(read_heads(dir)); }

Lineage lineage_of(const std::vector<CheckpointHead>& heads) {
  Lineage lineage;
  if (const CheckpointHead* newest = newest_timeline(heads)) {
    lineage.timeline = *newest->timeline;
    lineage.conflict = conflict_with(*newest, heads);
  }
  struct Stretch {
    const Timeline* timeline;
    int64_t last_step;
  };
  std::vector<Stretch> stretches = {{&lineage.timeline, INT64_MAX}};
  while (const Timeline* parent = parent_of(*stretches.back().timeline, heads)) {
    const int64_t step = stretches.back().timeline->parent->step;
    stretches.push_back({parent, std::min(step, stretches.back().last_step)});
    lineage.ancestors.push_back(*parent);
  }
  for (const CheckpointHead& head : heads) {
    const bool belongs =
        !head.timeline || std::any_of(stretches.begin(), stretches.end(), [&](const Stretch& of) {
          return head.info.step <= of.last_step && same_timeline(*head.timeline, *of.timeline);
        });
    (belongs ? lineage.checkpoints : lineage.left).push_back(head.info);
  }
  return lineage;
}

}  // namespace skein
