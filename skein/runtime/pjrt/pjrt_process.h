// The devices of a plugin that this process uses, each by a rank of its own that is a thread. They
// compile and run their programs together: one text, with the collectives between them in it.
//
// Threads  a rank waits in compile() and execute() until all have come; all come in the same order
// Errors   those of PjrtClient, for all ranks alike. Error{kPeerLost} after leave()
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "skein/base/threads/joint_call.h"
#include "skein/runtime/pjrt/pjrt_client.h"
#include "skein/runtime/pjrt/program_compiler.h"
#include "skein/stablehlo/lower.h"

namespace skein {

class PjrtProcess {
 public:
  // What a rank brings to be compiled.
  struct Part {
    std::string name;
    const Mesh& mesh;
    int64_t rank = 0;
    std::span<const Instruction> instructions;
    const stablehlo::CellMap& kept;
  };
  struct Compiled {
    stablehlo::Module module;
    ProgramCompiler::Executable executable;  // perhaps still being compiled
  };

  // The same object for all ranks of a process, each of which asks for it; `group` tells those of
  // several such groups apart.
  static std::shared_ptr<PjrtProcess> join(const PjrtOptions& options, int64_t group);

  PjrtProcess(const PjrtOptions& options, int64_t size);

  const PjrtClient& client() const { return client_; }
  const ProgramCompiler& compiler() const { return compiler_; }
  int64_t size() const { return size_; }

  std::shared_ptr<const Compiled> compile(int64_t device, const Part& part,
                                          const stablehlo::RuleTable& rules);
  // Starts the executable on all devices; the arguments and results of this one.
  std::vector<PjrtBuffer> execute(int64_t device, const Compiled& compiled,
                                  const std::vector<PJRT_Buffer*>& arguments);
  // This rank does not come any more.
  void leave();

 private:
  struct ToCompile {
    const Part* part;
    std::shared_ptr<const Compiled> compiled;
  };
  struct ToRun {
    const Compiled* compiled;
    const std::vector<PJRT_Buffer*>* arguments;
    std::vector<PjrtBuffer> results;
  };

  const int64_t size_;
  PjrtClient client_;
  ProgramCompiler compiler_;
  JointCall<ToCompile> compiling_;
  JointCall<ToRun> running_;
};

}  // namespace skein
