// Archives, whose members are read as the files of a folder are.
#include <fmt/format.h>

#include <map>

#include "skein/base/text/visible_text.h"
#include "skein/prepare/read/bytes/tar.h"
#include "skein/prepare/read/readers.h"

namespace skein {
namespace {

constexpr int kMaxDepth = 4;

// As a walk leaves out files of a folder.
std::string why_left_out(const TarMember& member) {
  if (!member.left_out.empty()) return member.left_out;
  for (const fs::path& part : fs::path(member.name)) {
    const std::string name = part.string();
    if (name.starts_with('.') && name != ".") return "a hidden file (named .…)";
    if (const std::string_view why = left_by_program(name); !why.empty()) return std::string(why);
  }
  return "";
}

}  // namespace

void read_archive(std::unique_ptr<ByteSource> source, const fs::path& path, int depth,
                  const ReadOptions& options, const DocumentVisitor& visit) {
  if (depth >= kMaxDepth) {
    fail(ErrorCode::kUnsupported,
         "{}: an archive within {} others: expected fewer; unpack the outermost", path.string(),
         depth);
  }
  ReadOptions of_members = options;
  of_members.bytes.on_read = {};  // the archive's are counted
  of_members.bytes.is_inside = true;
  if (!of_members.bytes.expansion) of_members.bytes.expansion = std::make_shared<Expansion>();
  TarReader archive(std::move(source), path.string());
  std::map<std::string, std::pair<int64_t, std::string>> left_out;
  ArchiveMember found{.archive = path};
  for (TarMember member; archive.next(member);) {
    ++found.number;
    if (member.is_folder) continue;
    found.path = path / fs::path(member.name).relative_path();
    if (const std::string why = why_left_out(member); !why.empty()) {
      auto& [count, first] = left_out[why];
      if (count++ == 0) first = escape_invalid_utf8(found.path.string());
      continue;
    }
    const auto read = [&] {
      read_member(archive.content(), found.path, depth + 1, of_members, visit);
    };
    options.on_member ? options.on_member(found, read) : read();
  }
  if (!options.on_left_out) return;
  for (const auto& [why, files] : left_out) options.on_left_out(why, files.first, files.second);
}

}  // namespace skein
