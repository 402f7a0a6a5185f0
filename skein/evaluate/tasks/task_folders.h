// Where task files are: the folders that a user names, and those of lm-evaluation-harness.
//
//   1. include paths              override the others
//   2. SKEIN_TASKS                folders, with `:` between: lm_eval/tasks, or a folder that holds
//                                 it, such as an unpacked wheel
//   3. lm_eval/tasks of a Python  only without SKEIN_TASKS: the first of VIRTUAL_ENV, CONDA_PREFIX,
//                                 the python3 of PATH, ~/.local, /usr/local and /usr that has it.
//                                 No Python is run
//
// Errors  kNotFound where none of them is there: one line, with the commands that fetch them
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace skein {

// In the order of TaskIndex: later folders override earlier ones. `may_be_none`: no task is asked
// for by its name.
std::vector<std::filesystem::path> task_folders(
    const std::vector<std::filesystem::path>& include_paths, bool may_be_none = false);

// configs/eval of an installed Skein, or of a checkout in whose build/ the program lies: groups of
// tasks, such as `original`. Any other folder overrides it.
std::optional<std::filesystem::path> groups_of_skein();

// The commands that fetch the tasks of lm-evaluation-harness, for errors.
std::string how_to_fetch_tasks();

}  // namespace skein
