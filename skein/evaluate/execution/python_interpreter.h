// The python3 of PATH that runs the programs of a model. Of a virtual environment it is the
// interpreter behind it: the packages of the environment are not seen by programs.
//
// Errors   kNotFound: no python3 in PATH; kUnsupported: it does not start, or is older than 3.6
#pragma once

#include <string>
#include <vector>

#include "skein/base/files/file.h"

namespace skein {

struct PythonInterpreter {
  std::string executable;         // without symbolic links
  std::vector<fs::path> folders;  // that it needs besides those of the system
};

PythonInterpreter find_python();

}  // namespace skein
