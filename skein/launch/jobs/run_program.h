// Another program of the machine, such as a scheduler's command: its input, its output, its end.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace skein {

// Runs `command`, the program first, which is looked for as a shell does; gives it `input` and
// returns what it prints, without the last line break. Its standard error is this process's.
// Errors  kNotFound where the program is not there: "sbatch is not on this machine: <advice>"; kIo
//         where it fails or cannot be started
std::string run_program(std::span<const std::string> command, std::string_view input,
                        std::string_view advice);

}  // namespace skein
