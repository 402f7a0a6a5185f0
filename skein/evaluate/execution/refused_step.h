// Why a program cannot be confined here, for a person: which step the kernel refused, and what
// allows it. For confined_process.cc alone.
//
// Errors   kUnsupported or kIo, always
#pragma once

#include <string>

#include "skein/evaluate/execution/confined_child.h"

namespace skein {

[[noreturn]] void refuse_step(ConfinedStep step, int error_number, const std::string& executable);

// Before 5.14 Linux counts the processes of a user in all user namespaces together.
void require_new_kernel();

}  // namespace skein
