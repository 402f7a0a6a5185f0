// Where this program lies, and how it is started again: the one place that knows.
//
// The kernel's answer, /proc/self/exe, is the loader where someone named the loader
// (`/lib64/ld-linux-x86-64.so.2 --library-path LIBRARIES ./skein train`), as the archive of
// scripts/package.sh does where a system's C library is older than the program's. So the program's
// file is the file that this code is mapped from, and what /proc/self/exe says is compared with it.
//
// Errors   Error{kIo} where the program runs under a loader, and its file was replaced or removed
//          since: the loader would start another program in its place. Without a loader, what runs
//          can be started again and read even then.
// Threads  all may be called from any thread
// Source   proc(5): exe, maps, cmdline; ld.so(8): the loader's options
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

// The file to start, absolute: the program's own, or, in an archive, the launcher that chooses a
// loader for it: `bin/skein` for a program at `libexec/skein`.
fs::path program_path();

// The words that start this program on another machine, or in a script: program_path(), or the
// loader that was named, its options, and the program's file.
std::vector<std::string> program_words();

// The first arguments of this program when kProgramToStart is executed; the program's own follow.
// `name` is its argv[0], where the loader lets it be chosen.
std::vector<std::string> words_to_start_again(const std::string& name);
inline constexpr const char* kProgramToStart = "/proc/self/exe";

// The file to execute for that: kProgramToStart, or, where there is no /proc, the program's path.
std::string program_to_start();

// The bytes of the program itself, under a loader as well.
MappedFile map_program();

// Below: parts of the above.

// The file that `address` is mapped from, by the text of /proc/self/maps; empty: none.
std::string mapped_file(std::string_view maps, uintptr_t address);

// Of a loader's command line (/proc/self/cmdline, a NUL after each word) the words before the
// program's file: the loader and its options. Empty where no program follows.
std::vector<std::string> loader_words(std::string_view command_line);

// What a person starts, where `program` is the file that runs.
fs::path path_to_start(const fs::path& program);

}  // namespace skein
