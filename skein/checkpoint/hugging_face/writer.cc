#include <fmt/format.h>

#include <set>
#include <system_error>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/shared/partials.h"
#include "skein/base/text/json_text.h"
#include "skein/checkpoint/format/safetensors_writer.h"
#include "skein/checkpoint/hugging_face/hugging_face.h"

namespace skein {
namespace {

using Group = std::vector<size_t>;  // indices of tensors that share a file

std::vector<Group> split_by_size(const std::vector<ExportTensor>& tensors, int64_t max_bytes,
                                 int64_t& total_bytes) {
  std::vector<Group> groups(1);
  int64_t group_bytes = 0;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto bytes = checked_bytes(tensors[i].shape, size_of(tensors[i].dtype));
    if (!bytes) fail(ErrorCode::kInvalid, "tensor \"{}\" is too large to export", tensors[i].name);
    if (!groups.back().empty() && group_bytes + *bytes > max_bytes) {
      groups.emplace_back();
      group_bytes = 0;
    }
    groups.back().push_back(i);
    group_bytes += *bytes;
    total_bytes += *bytes;
  }
  return groups;
}

void write_group(const fs::path& path, const std::vector<ExportTensor>& tensors, const Group& group,
                 const FileOps& ops) {
  std::vector<SafetensorsTensor> described;
  for (const size_t i : group) {
    described.push_back({tensors[i].name, tensors[i].dtype, tensors[i].shape});
  }
  const SafetensorsLayout layout = plan_safetensors(described, {{"format", "pt"}});
  SafetensorsWriter writer(path, layout, ops);
  std::vector<std::byte> buffer;
  for (const size_t position : layout.order) {
    buffer.resize(layout.bytes[position]);
    tensors[group[position]].fill(buffer);
    writer.write(buffer);
  }
  writer.finish();
}

void write_text(const fs::path& path, std::string_view text, const FileOps& ops) {
  const FileDescriptor file = ops.create(path);
  ops.write(file.get(), std::as_bytes(std::span(text)), path);
  ops.sync(file.get(), path);
}

bool is_plain(const fs::path& name) {
  return !name.empty() && name.filename() == name && name != "." && name != "..";
}

void write_contents(const fs::path& folder, const HuggingFaceExport& contents, const FileOps& ops) {
  int64_t total_bytes = 0;
  const auto groups = split_by_size(contents.tensors, contents.max_shard_bytes, total_bytes);
  Json weight_map = Json::object();
  std::set<std::string> names;
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string file = groups.size() == 1 ? "model.safetensors"
                                                : fmt::format("model-{:05d}-of-{:05d}.safetensors",
                                                              i + 1, groups.size());
    write_group(folder / file, contents.tensors, groups[i], ops);
    for (const size_t index : groups[i]) {
      const std::string& name = contents.tensors[index].name;
      weight_map[name] = file;
      if (!names.insert(name).second) {
        fail(ErrorCode::kInvalid, "two tensors to export are named \"{}\"", name);
      }
    }
  }
  if (groups.size() > 1) {
    const Json index = {{"metadata", {{"total_size", total_bytes}}}, {"weight_map", weight_map}};
    write_text(folder / "model.safetensors.index.json",
               exact_json(index, "model.safetensors.index.json", 2) + "\n", ops);
  }
  for (const auto& [name, text] : contents.texts) {
    const fs::path parent = fs::path(name).parent_path();
    if (!is_plain(fs::path(name).filename()) || !(parent.empty() || is_plain(parent))) {
      fail(ErrorCode::kInvalid, "\"{}\" is not a plain file name to export to", name);
    }
    if (!parent.empty()) make_folders(folder / parent);
    write_text(folder / name, text, ops);
  }
  for (const fs::path& source : contents.copies) {
    const MappedFile file(source);
    write_text(folder / source.filename(), file.text(), ops);
  }
}

}  // namespace

void write_hugging_face(const fs::path& folder, const HuggingFaceExport& contents,
                        const FileOps& ops) {
  fs::path path = folder.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (path.empty() || path == "." || path.filename() == "..") {
    fail(ErrorCode::kUsage, "--out {}: expected the name of a new folder for the export",
         folder.empty() ? "\"\"" : folder.string());
  }
  if (is_there(path) && !(fs::is_directory(path) && fs::is_empty(path))) {
    fail(ErrorCode::kUsage, "{} exists and is not an empty folder: name a new one for the export",
         path.string());
  }
  remove_dead_partials(path);
  const fs::path partial = unique_partial(path);
  ops.make_folder(partial);
  const FileDescriptor held = hold_partial(partial);
  try {
    write_contents(partial, contents, ops);
    ops.sync_folder(partial);
    ops.rename(partial, path);
    ops.sync_folder(parent_folder(path));
  } catch (const Error&) {
    try {
      ops.remove_tree(partial);
    } catch (const Error&) {
      // The first error is the one to report.
    }
    throw;
  }
}

}  // namespace skein
