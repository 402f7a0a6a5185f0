#include "skein/base/machine/program_path.h"

#include <sys/auxv.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

#include "skein/base/error.h"

namespace skein {
namespace {

constexpr std::string_view kDeleted = " (deleted)";  // what the kernel appends
constexpr std::string_view kProgramName = "--argv0";

struct StartedProgram {
  std::string file;                 // as the kernel names it; ends with kDeleted where it is gone
  std::vector<std::string> loader;  // and its options; empty: it was started by itself
};

std::string without_mark(const std::string& file) {
  std::error_code error;
  const bool is_gone = file.ends_with(kDeleted) && !fs::exists(file, error);
  return is_gone ? file.substr(0, file.size() - kDeleted.size()) : file;
}

// The file of the code itself. Without /proc, the file that was executed.
StartedProgram find_program() {
  std::error_code error;
  const std::string executed = fs::read_symlink(kProgramToStart, error).string();
  const auto here = reinterpret_cast<uintptr_t>(&find_program);
  StartedProgram program{mapped_file(read_file_if_any("/proc/self/maps"), here), {}};
  if (program.file.empty()) program.file = executed;
  if (program.file.empty()) {
    const auto* name = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    program.file = fs::absolute(name == nullptr ? "skein" : name, error).lexically_normal();
    return program;
  }
  const bool has_loader_of_its_own = ::getauxval(AT_BASE) != 0;  // which the kernel loaded
  if (has_loader_of_its_own || executed.empty() || executed == program.file) return program;
  program.loader = loader_words(read_file_if_any("/proc/self/cmdline"));
  if (program.loader.empty()) program.loader = {executed};
  program.loader.front() = without_mark(executed);
  return program;
}

void require_there(const StartedProgram& program) {
  if (without_mark(program.file) == program.file) return;
  fail(ErrorCode::kIo,
       "{} was replaced or removed since this process began, which runs it under the loader {} and "
       "cannot start it again: start the run again, with the program that is there now",
       without_mark(program.file), program.loader.front());
}

bool takes_a_value(std::string_view option) {
  constexpr std::array<std::string_view, 7> kWithValue = {
      "--library-path",         "--inhibit-rpath",    "--audit", "--preload", kProgramName,
      "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"};
  return std::find(kWithValue.begin(), kWithValue.end(), option) != kWithValue.end();
}

// maps writes a line feed in a name as \012, and nothing else so.
std::string unescaped(std::string_view name) {
  constexpr std::string_view kLineFeed = "\\012";
  std::string text(name);
  for (size_t at = 0; (at = text.find(kLineFeed, at)) != std::string::npos; ++at) {
    text.replace(at, kLineFeed.size(), 1, '\n');
  }
  return text;
}

}  // namespace

std::string mapped_file(std::string_view maps, uintptr_t address) {
  while (!maps.empty()) {
    const size_t end = std::min(maps.find('\n'), maps.size());
    const std::string_view line = maps.substr(0, end);
    maps.remove_prefix(std::min(end + 1, maps.size()));
    // 55d0c8a00000-55d0c8b00000 r-xp 00001000 fe:00 1234     /opt/skein/bin/skein
    uintptr_t first = 0, past = 0;
    const auto dash = std::from_chars(line.begin(), line.end(), first, 16);
    if (dash.ec != std::errc() || dash.ptr == line.end() || *dash.ptr != '-') continue;
    if (std::from_chars(dash.ptr + 1, line.end(), past, 16).ec != std::errc()) continue;
    if (address < first || address >= past) continue;
    const size_t name = line.find('/');
    return name == line.npos ? "" : unescaped(line.substr(name));
  }
  return "";
}

std::vector<std::string> loader_words(std::string_view command_line) {
  std::vector<std::string> words;
  bool is_value = false;
  while (!command_line.empty()) {
    const size_t end = std::min(command_line.find('\0'), command_line.size());
    const std::string_view word = command_line.substr(0, end);
    command_line.remove_prefix(std::min(end + 1, command_line.size()));
    if (!words.empty() && !is_value && !word.starts_with("--")) return words;
    is_value = !words.empty() && !is_value && takes_a_value(word);
    words.emplace_back(word);
  }
  return {};
}

fs::path path_to_start(const fs::path& program) {
  const fs::path folder = program.parent_path();
  if (folder.filename() != "libexec") return program;
  const fs::path launcher = folder.parent_path() / "bin" / program.filename();
  return ::access(launcher.c_str(), X_OK) == 0 ? launcher : program;
}

fs::path program_path() { return path_to_start(without_mark(find_program().file)); }

std::vector<std::string> program_words() {
  const StartedProgram program = find_program();
  const std::string file = without_mark(program.file);
  const fs::path start = path_to_start(file);
  if (program.loader.empty() || start != file) return {start.string()};
  std::vector<std::string> words = program.loader;
  words.push_back(file);
  return words;
}

std::vector<std::string> words_to_start_again(const std::string& name) {
  const StartedProgram program = find_program();
  if (program.loader.empty()) return {name};
  require_there(program);
  std::vector<std::string> words = program.loader;
  const auto option = std::find(words.begin(), words.end(), kProgramName);
  if (option != words.end()) *(option + 1) = name;
  words.push_back(program.file);
  return words;
}

std::string program_to_start() {
  const bool has_proc = ::access(kProgramToStart, F_OK) == 0;
  return has_proc ? kProgramToStart : find_program().file;
}

MappedFile map_program() {
  const StartedProgram program = find_program();
  std::error_code error;
  if (program.loader.empty() && fs::exists(kProgramToStart, error)) {
    return MappedFile(kProgramToStart);
  }
  if (!program.loader.empty()) require_there(program);
  return MappedFile(program.file);
}

}  // namespace skein
