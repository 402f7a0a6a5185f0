// How a device that compiles whole programs does it, and where it keeps them.
//
// Format   docs/compile_cache_format.md, of what is kept
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "skein/base/files/file.h"

namespace skein {

// A program that was compiled, or was found compiled.
struct CompiledProgram {
  std::string name;
  double seconds = 0;
  bool is_from_cache = false;
};

// Files that several machines read and write, by name.
// Errors  both may throw Error
struct SharedFiles {
  std::string place;  // "s3://bucket/compiled"; "": there are none
  std::function<std::optional<std::string>(const std::string& name)> read;
  std::function<void(const std::string& name, std::string_view bytes)> write;
};

struct CompilerSettings {
  fs::path cache_folder;    // of executables; "": they are not kept
  int64_t cache_bytes = 0;  // the most that it holds
  SharedFiles shared;       // what the folder has not is looked up here; not without a folder
  std::string level;        // "0" to "3", or options of the compiler; "": its default
  double timeout_s = 0;     // for one program; 0: none
  int64_t executions_in_flight = 3;
  int num_jobs = 1;  // programs that are compiled at a time
  // Called before a program is compiled, and as soon as it is there; by any thread, one call at a
  // time. Null: what begins is a line of the log's file.
  std::function<void(const std::string& what)> on_begin;
  std::function<void(const CompiledProgram&)> on_made;
};

}  // namespace skein
