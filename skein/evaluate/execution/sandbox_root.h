// The file system that a program in the sandbox sees: the system's programs and libraries and the
// folders of Python, read-only, five devices, and an empty /tmp. Nothing else of this machine: no
// home, no /etc but the loader's cache, no /proc, no /sys.
//
// Errors   none here: a folder that is not there is left out, and a Python that then lacks
//          something fails in the sandbox's trial
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "skein/evaluate/execution/python_interpreter.h"

namespace skein {

// Something of this machine that keeps its path. Targets are relative to the new root.
struct SandboxMount {
  std::string source, target;
  bool is_folder = true;
  bool is_device = false;
};

struct SandboxRoot {
  std::vector<SandboxMount> mounts;
  std::vector<std::string> folders;                        // to be made, outer ones first
  std::vector<std::pair<std::string, std::string>> links;  // what a link leads to, and its name
};

SandboxRoot sandbox_root(const PythonInterpreter& python);

}  // namespace skein
