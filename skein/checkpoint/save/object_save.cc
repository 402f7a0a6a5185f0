#include "skein/checkpoint/save/object_save.h"

#include <charconv>
#include <random>
#include <unordered_map>

#include "skein/base/text/json_text.h"
#include "skein/checkpoint/format/stored_file.h"

namespace skein {
namespace {

constexpr const char* kOutcome = "outcome";

// A request costs money, and a store refuses those of thousands of ranks at once.
Patience patience_of_bucket() { return {std::chrono::milliseconds(20), std::chrono::seconds(2)}; }

// The rank of "<saving>/part-00002.bin" and the like; -1 for other names.
int rank_in(std::string_view name, std::string_view before) {
  int rank = -1;
  if (!name.starts_with(before)) return -1;
  std::from_chars(name.data() + before.size(), name.data() + name.size(), rank);
  return rank;
}

// The text of an object that is there, or will be.
std::optional<std::string> text_if_there(const fs::path& url) {
  try {
    return StoredFile(url).text();
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kNotFound) return std::nullopt;
    throw;
  }
}

void check_objects(const fs::path& folder, const std::vector<SavePart>& parts,
                   const std::vector<StoredObject>& objects) {
  std::unordered_map<std::string_view, int64_t> sizes;
  for (const StoredObject& object : objects) sizes.emplace(object.name, object.num_bytes);
  for (const SavePart& part : parts) {
    for (int64_t i = 0; i < part.index().num_files(); ++i) {
      const ManifestFile file = part.index().file(i);
      const auto found = sizes.find(file.name);
      if (found != sizes.end() && found->second == file.file_bytes) continue;
      fail(ErrorCode::kIo, "{}: {}, expected an object of {} bytes", (folder / file.name).string(),
           found == sizes.end() ? "is not there" : fmt::format("{} bytes", found->second),
           file.file_bytes);
    }
  }
}

}  // namespace

ObjectSave::ObjectSave(const SaveJob& job, int64_t step)
    : job_(job), folder_(job.dir / checkpoint_name(step)) {
  std::string start = job.options.save_id;
  if (job.options.num_ranks == 1) {  // it needs to agree with nobody
    std::random_device random;
    start = fmt::format("{:08x}{:08x}", random(), random());
  }
  save_ = fmt::format("{}-{}", start, job.number);
  saving_ = folder_ / ("saving." + save_);
}

std::string ObjectSave::object_name(const std::string& file) const {
  const size_t dot = file.rfind('.');
  return file.substr(0, dot) + "." + save_ + file.substr(dot);
}

fs::path ObjectSave::told(int rank, const char* what) const {
  return saving_ / fmt::format("{}-{:05d}", what, rank);
}

void ObjectSave::check(const Patience& patience, const std::string& waiting_for) const {
  patience.check(job_.options.should_abort,
                 job_.options.deadline_s * (job_.options.rank == 0 ? 1 : 2), waiting_for);
}

void ObjectSave::publish(const Manifest& own) {
  job_.ops.put_object(told(job_.options.rank, "part").string() + ".bin", part_bytes(own));
}

void ObjectSave::read_parts(const std::vector<StoredObject>& objects,
                            std::vector<std::optional<SavePart>>& parts) const {
  const std::string inside = saving_.filename().string() + "/";
  for (const StoredObject& object : objects) {
    const int failed = rank_in(object.name, inside + "failed-");
    if (failed >= 0) {
      throw failure_of(text_if_there(folder_ / object.name).value_or(""), object.name, failed);
    }
    const int rank = rank_in(object.name, inside + "part-");
    if (rank < 1 || rank >= job_.options.num_ranks || parts[rank]) continue;
    const fs::path url = folder_ / object.name;
    if (auto bytes = text_if_there(url)) parts[rank].emplace(std::move(*bytes), url.string());
  }
}

std::vector<SavePart> ObjectSave::collect(const Manifest& own) {
  std::vector<std::optional<SavePart>> parts(job_.options.num_ranks);
  parts[0].emplace(own);
  const auto is_there = [](const auto& part) { return part.has_value(); };
  std::vector<StoredObject> objects;
  for (Patience patience = patience_of_bucket();; patience.sleep()) {
    objects = objects_in(folder_);
    read_parts(objects, parts);
    if (std::all_of(parts.begin(), parts.end(), is_there)) break;
    check(patience, missing_parts(parts));
  }
  std::vector<SavePart> result;
  for (auto& part : parts) result.push_back(std::move(*part));
  check_objects(folder_, result, objects);
  return result;
}

void ObjectSave::end() {
  std::string kept;
  if (job_.options.num_ranks > 1) {
    job_.ops.put_object(saving_ / kOutcome, json_text(Json({{"committed", true}})));
    kept = saving_.filename().string();  // until all ranks have met in a later save
  }
  remove_unnamed(folder_, objects_in(folder_), job_.ops, kept);
}

std::optional<Error> ObjectSave::wait_for_commit() {
  try {
    for (Patience patience = patience_of_bucket();; patience.sleep()) {
      if (const auto outcome = text_if_there(saving_ / kOutcome)) {
        const Json json = Json::parse(*outcome, nullptr, false);
        if (json.is_object() && json.contains("committed")) return std::nullopt;
        return failure_of(*outcome, (saving_ / kOutcome).string(), 0);
      }
      check(patience, "waiting for rank 0 to commit");
    }
  } catch (const Error& error) {
    return give_up(error);
  }
}

Error ObjectSave::give_up(const Error& error) {
  const bool is_first = job_.options.rank == 0;
  try {
    if (job_.options.num_ranks == 1) {
      // Only what this save wrote: an older checkpoint of the step may be there.
      for (const CheckpointFile& file : job_.layout.files) {
        job_.ops.remove_tree(folder_ / object_name(file.name));
      }
    } else {
      job_.ops.put_object(is_first ? saving_ / kOutcome : told(job_.options.rank, "failed"),
                          failure_text(error));
    }
  } catch (const Error&) {
    // The others' deadline ends the save, and the next start or save cleans up.
  }
  return error;
}

}  // namespace skein
