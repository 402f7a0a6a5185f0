// What a process does in its new namespaces before it becomes the program: it makes its root,
// gives up its rights, limits itself, and executes the program.
//
// The process shares the memory of the thread that made it, which waits (CLONE_VM | CLONE_VFORK):
// so nothing is copied, however much memory a model takes, and only system calls are made here.
// All that these need is prepared in ConfinedPlan. Rights are changed by system calls, not by
// functions of the C library, which would change those of all threads of the parent.
//
// Errors   a ConfinedReport with the step that failed, through `status`; then the process ends
#pragma once

#include <linux/filter.h>
#include <sys/resource.h>

#include <utility>
#include <vector>

#include "skein/evaluate/execution/sandbox_root.h"

namespace skein {

enum class ConfinedStep : int {
  kReady,  // no failure: the parent may write the maps of users and groups
  kClone,
  kFiles,
  kMaps,
  kPrivateMounts,
  kOpenMount,
  kUser,
  kMakeRoot,
  kFillRoot,
  kEnterRoot,
  kLimits,
  kFilter,
  kExecute,
};

struct ConfinedReport {
  ConfinedStep step;
  int error;
};

inline constexpr unsigned kConfinedUser = 1000;  // as the program sees itself, and its group

struct ConfinedPlan {
  // Of the parent, numbered from 10 on. The program has the first five as 0 to 4.
  int files[5] = {-1, -1, -1, -1, -1};
  int status = -1, go = -1;

  const SandboxRoot* root = nullptr;
  std::vector<int> mount_files;  // room for one of each mount
  const char* temporary_options = nullptr;

  std::vector<std::pair<int, rlimit>> limits;
  sock_fprog filter{};

  const char* executable = nullptr;
  char* const* arguments = nullptr;
  char* const* environment = nullptr;
  bool may_set_groups = false;  // written by the parent before it says go
};

// The function of clone(): `plan` is a ConfinedPlan. Never returns if the program is executed.
int confined_child(void* plan);

}  // namespace skein
