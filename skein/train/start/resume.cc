#include "skein/train/start/resume.h"

#include <fmt/format.h>

#include <algorithm>

#include "skein/base/text/json_text.h"
#include "skein/base/text/visible_text.h"
#include "skein/checkpoint/format/stored_file.h"
#include "skein/config/run/checkpoints.h"
#include "skein/objects/url.h"
#include "skein/train/start/consensus.h"

namespace skein {
namespace {

// Where links lead.
fs::path real_path(const fs::path& path) {
  if (is_object_url(path)) return parse_object_url(path.native()).text();
  std::error_code error;
  const fs::path found = fs::weakly_canonical(fs::absolute(path), error);
  const fs::path normal = error ? fs::absolute(path).lexically_normal() : found;
  return normal.has_filename() ? normal : normal.parent_path();
}

// The same, or the path as it was given where a link leads to a name that is not UTF-8: JSON, and
// so a manifest, cannot hold it.
fs::path full_path(const fs::path& path) {
  fs::path real = real_path(path);
  if (is_valid_utf8(real.native())) return real;
  fs::path given = fs::absolute(path);
  // Behind a link, .. is not the folder that the text names.
  if (std::find(given.begin(), given.end(), "..") == given.end()) given = given.lexically_normal();
  return given.has_filename() ? given : given.parent_path();
}

bool same_folder(const fs::path& a, const fs::path& b) { return real_path(a) == real_path(b); }

// The final path of a checkpoint, even while it lies under a temporary name because a crash
// interrupted its replacement.
fs::path final_path(const fs::path& full) {
  const auto step = step_of_folder(full);
  return step ? full.parent_path() / checkpoint_name(*step) : full;
}
fs::path place_of(const fs::path& checkpoint) { return final_path(full_path(checkpoint)); }
bool same_place(const fs::path& a, const fs::path& b) {
  return final_path(real_path(a)) == final_path(real_path(b));
}

std::string steps_of(const std::vector<CheckpointInfo>& checkpoints) {
  constexpr size_t kMost = 5;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, checkpoints.size()); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", checkpoints[i].step);
  }
  return checkpoints.size() > kMost ? text + ", …" : text;
}

// What run.resume names.
struct Named {
  std::string text;  // as the user wrote it
  fs::path folder;   // the folder of checkpoints
  fs::path path;     // the checkpoint; empty: the newest one in `folder`
  bool is_there = true;
};

Named what_is_named(const std::string& resume) {
  const fs::path path = find_checkpoint(resume);
  const fs::path full = full_path(resume);
  std::error_code error;
  const bool in_bucket = is_object_url(path);
  Named named{resume, full.parent_path(), path,
              in_bucket ? is_stored(path) : fs::is_directory(path, error)};
  if (error && error != std::errc::no_such_file_or_directory &&
      error != std::errc::not_a_directory) {
    fail(ErrorCode::kIo, "run.resume is \"{}\", which cannot be looked at: {}", resume,
         error.message());
  }
  const bool is_checkpoint = step_of_folder(full) || is_stored(path / "manifest.json");
  if (!is_checkpoint) {
    named.folder = full_path(checkpoints_inside(path));
    named.path.clear();
  }
  return named;
}

// "; there are those of steps 400, 350: …" beside a checkpoint that is not there.
std::string what_lies_beside(const Named& named) {
  if (!step_of_folder(full_path(named.text))) return "";
  const auto beside = list_checkpoints(named.folder);
  if (beside.empty()) return "";
  return fmt::format("; {} holds those of steps {}: checkpoint.keep says how many stay",
                     named.folder.string(), steps_of(beside));
}

void check_is_there(const Named& named) {
  const fs::path path = named.text;
  if (!named.is_there) {
    fail(ErrorCode::kUsage,
         "run.resume is \"{}\", which is {}: expected \"auto\", \"never\", or the path of a "
         "checkpoint or a run{}",
         named.text, fs::exists(path) ? "not a folder" : "not there", what_lies_beside(named));
  }
  if (!named.path.empty() || !list_checkpoints(named.folder).empty()) return;
  if (is_stored(path / "config.json")) {
    fail(
        ErrorCode::kUsage,
        "run.resume is \"{}\", a Hugging Face model: expected a checkpoint or a run; to begin from "
        "its weights set model.init_from",
        named.text);
  }
  fail(ErrorCode::kUsage, "run.resume is \"{}\", which holds no checkpoint: expected one, or a run",
       named.text);
}

class Chooser {
 public:
  Chooser(const fs::path& dir, const ReportDamaged& report, const SearchOptions& options)
      : dir_(dir), report_(report), options_(options), own_(lineage_patiently(dir, options)) {}

  StartingPoint choose(const std::string& resume) {
    if (resume == "never") return never();
    if (resume == "auto") return newest_or_anew();
    const Named named = what_is_named(resume);
    const bool inside = same_folder(named.folder, dir_);
    if (inside && named.path.empty()) {
      check_is_there(named);
      return newest_or_anew();
    }
    if (began_from(named, inside)) {
      StartingPoint start = newest_or_anew();
      start.why += fmt::format(", which began from run.resume = \"{}\"", resume);
      return start;
    }
    check_is_there(named);
    if (!inside && !is_empty()) refuse(named);
    return begin_from(named, inside);
  }

  StartingPoint before(int64_t step, const Timeline& current, const std::string& origin) {
    const auto& parent = current.parent;
    // Where `current` has saved nothing yet, what its parent saved later is not its own.
    const bool began_here = parent && parent->lies_beside();
    const bool has_saved = same_timeline(current, own_.timeline);
    const int64_t last = has_saved ? step : std::min(step, began_here ? parent->step : -1);
    std::erase_if(own_.checkpoints, [&](const CheckpointInfo& own) { return own.step > last; });
    const auto found = find_newest_good(own_, report_, options_);
    StartingPoint start;
    start.checkpoint = found ? found->path.string() : origin;
    start.timeline.run_id = new_run_id();
    start.timeline.number = 1 + std::max(current.number, own_.timeline.number);
    if (start.checkpoint.empty()) return start;
    const auto at = step_of_folder(place_of(start.checkpoint));
    if (!at || *at > step) {
      fail(ErrorCode::kNotFound,
           "{} holds no good checkpoint at or before step {} to go back to: expected one; lower "
           "checkpoint.every_steps, or raise checkpoint.keep",
           dir_.string(), step);
    }
    start.parent = std::make_shared<CheckpointHold>(start.checkpoint);
    const fs::path place = place_of(start.checkpoint);
    start.timeline.parent = {read_timeline(start.checkpoint).run_id, *at,
                             found ? place.filename().string() : place.string()};
    return start;
  }

 private:
  bool is_empty() const { return own_.checkpoints.empty() && own_.left.empty(); }

  StartingPoint never() const {
    if (is_empty()) return anew();
    fail(ErrorCode::kUsage,
         "{} holds checkpoints, and run.resume is \"never\": name another run.dir, or move them",
         dir_.string());
  }

  static StartingPoint anew() { return {"", {new_run_id(), 1, std::nullopt}, "", nullptr}; }

  StartingPoint newest_or_anew() {
    if (is_empty()) return anew();
    StartingPoint start{newest_good(own_, dir_).path.string(), own_.timeline, "", nullptr};
    if (start.timeline.run_id.empty()) start.timeline.run_id = new_run_id();
    start.why = "the newest good checkpoint of this run";
    if (!own_.left.empty()) {
      start.why += fmt::format("; those of steps it went back from are left alone ({})",
                               steps_of(own_.left));
    }
    return start;
  }

  CheckpointInfo newest_good(const Lineage& lineage, const fs::path& dir) {
    int64_t num_damaged = 0;
    const auto newest = find_newest_good(
        lineage,
        [&](const CheckpointInfo& info, const Error& why) {
          ++num_damaged;
          if (report_) report_(info, why);
        },
        options_);
    if (newest) return *newest;
    fail(ErrorCode::kCorrupt,
         "none of the {} checkpoints in {} is good: mend or move them to begin again{}",
         num_damaged, dir.string(),
         lineage.left.empty()
             ? std::string()
             : fmt::format(", or name one of an earlier timeline (steps {}) in run.resume",
                           steps_of(lineage.left)));
  }

  // Ancestor timelines count too: a run that began from `named` may have been rewound within its
  // own folder since.
  bool began_from(const Named& named, bool inside) const {
    if (own_.conflict) return false;
    return began_from(named, own_.timeline) ||
           (!inside && std::any_of(own_.ancestors.begin(), own_.ancestors.end(),
                                   [&](const Timeline& of) { return began_from(named, of); }));
  }

  // Compares paths first, then run ids: the parent may have been moved since.
  bool began_from(const Named& named, const Timeline& timeline) const {
    const auto& parent = timeline.parent;
    if (!parent) return false;
    const fs::path was = parent->lies_beside() ? dir_ / parent->path : fs::path(parent->path);
    if (named.path.empty() ? same_folder(was.parent_path(), named.folder)
                           : same_place(was, named.text)) {
      return true;
    }
    if (parent->run_id.empty() || !named.is_there) return false;
    if (!named.path.empty()) {
      const auto found = try_run([&] { return read_timeline(named.path); });
      return found.ok() && Result<Timeline>(found).value().run_id == parent->run_id &&
             step_of_folder(full_path(named.text)) == parent->step;
    }
    const std::vector<CheckpointHead> heads = read_heads(named.folder);
    return std::any_of(heads.begin(), heads.end(), [&](const CheckpointHead& head) {
      return head.timeline && head.timeline->run_id == parent->run_id;
    });
  }

  [[noreturn]] void refuse(const Named& named) const {
    const CheckpointInfo& newest =
        own_.checkpoints.empty() ? own_.left.front() : own_.checkpoints.front();
    fail(ErrorCode::kUsage,
         "run.resume is \"{}\", which is where an empty run begins, but {} holds checkpoints that "
         "did not begin from it (the newest of step {}): name another run.dir, or set run.resume = "
         "\"auto\" to continue from those",
         named.text, dir_.string(), newest.step);
  }

  StartingPoint begin_from(const Named& named, bool inside) {
    StartingPoint start;
    CheckpointInfo from{0, named.path};
    if (named.path.empty()) {
      from = newest_good(lineage_patiently(named.folder, options_), named.folder);
      start.parent = std::make_shared<CheckpointHold>(from.path);
    } else {
      start.parent = std::make_shared<CheckpointHold>(from.path);
      from.step = verify_patiently(from.path, options_).value().step;
    }
    start.checkpoint = from.path.string();
    start.timeline.run_id = new_run_id();
    start.timeline.number = 1 + (is_empty() ? 0 : own_.timeline.number);
    const fs::path place = place_of(from.path);
    start.timeline.parent = {read_timeline(from.path).run_id, from.step,
                             inside ? place.filename().string() : place.string()};
    start.why = fmt::format("as run.resume = \"{}\" says", named.text);
    const bool leaves_some =
        std::any_of(own_.checkpoints.begin(), own_.checkpoints.end(),
                    [&](const CheckpointInfo& own) { return own.step > from.step; });
    if (inside && leaves_some) {
      start.why +=
          "; the checkpoints after it stay where they are until this run saves the same steps or "
          "you remove them, and are not taken up again";
    }
    return start;
  }

  const fs::path& dir_;
  const ReportDamaged& report_;
  const SearchOptions& options_;
  Lineage own_;
};

}  // namespace

void require_resume(const Config& config) {
  const std::string& resume = config.run.resume;
  if (resume == "auto" || resume == "never" || is_object_url(resume)) return;
  const std::string own = checkpoint_dir(config);
  if (is_object_url(own) || !list_checkpoints(own).empty()) return;
  check_is_there(what_is_named(resume));
}

RunLock lock_checkpoints(const std::string& dir, const std::string& run_dir) {
  return RunLock(dir, {"checkpoint folder", "checkpoint.dir",
                       fmt::format(", which trains {}", fs::absolute(run_dir).string())});
}

RunLocks lock_run(const Config& config) {
  RunLocks locks{RunLock(config.run.dir), std::nullopt};
  if (is_object_url(checkpoint_dir(config))) return locks;
  std::error_code none;  // set where the folder does not exist yet
  if (!fs::equivalent(checkpoint_dir(config), config.run.dir, none)) {
    locks.elsewhere.emplace(lock_checkpoints(checkpoint_dir(config), config.run.dir));
  }
  return locks;
}

StartingPoint choose_start(const RunLock&, const fs::path& dir, const std::string& resume,
                           const ReportDamaged& report_damaged, const SearchOptions& options) {
  clean_unfinished(dir, FileOps());
  return Chooser(dir, report_damaged, options).choose(resume);
}

StartingPoint choose_before(const RunLock&, const fs::path& dir, int64_t step,
                            const Timeline& current, const std::string& origin,
                            const ReportDamaged& report_damaged, const SearchOptions& options) {
  return Chooser(dir, report_damaged, options).before(step, current, origin);
}

StartingPoint start_of_rank_0(Communicator& world, StartingPoint own) {
  if (world.size() == 1) return own;
  const Json sent = {
      {"checkpoint", own.checkpoint}, {"timeline", timeline_json(own.timeline)}, {"why", own.why}};
  const std::string what = "the start that rank 0 chose";
  const Json json = parse_json(text_of_rank_0(world, exact_json(sent, what)), what);
  return {json.at("checkpoint").get<std::string>(), parse_timeline(json.at("timeline"), what),
          json.at("why").get<std::string>(), own.parent};
}

}  // namespace skein
