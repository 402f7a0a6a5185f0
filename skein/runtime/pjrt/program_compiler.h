// Makes executables of programs' text, each text once: from the cache of this machine where it has
// them, else by the compiler.
//
// Threads  any number of threads may ask; different texts are compiled at the same time, and who
//          asks for a text that is being compiled waits for it
// Errors   kInternal, with the program's name and the size of its text: what the compiler says, or
//          that it took too long (call_within.h: the process then has to end)
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "skein/base/shared/heartbeat.h"
#include "skein/runtime/pjrt/executable_cache.h"
#include "skein/runtime/pjrt/pjrt_client.h"
#include "skein/runtime/pjrt/program_key.h"

namespace skein {

class ProgramCompiler {
 public:
  using Executable = std::shared_future<std::shared_ptr<PjrtExecutable>>;

  // `client` outlives this and every executable.
  ProgramCompiler(const PjrtClient& client, const PjrtOptions& options);
  // Waits for what was begun.
  ~ProgramCompiler();
  ProgramCompiler(const ProgramCompiler&) = delete;
  ProgramCompiler& operator=(const ProgramCompiler&) = delete;

  // `name` is for messages; `num_replicas` devices run the text at once. Where the settings have
  // several jobs another thread compiles it, and the result says what went wrong; so does
  // compiled().
  Executable start(const std::string& name, const std::string& text, int64_t num_replicas);
  std::shared_ptr<PjrtExecutable> executable(const std::string& name, const std::string& text,
                                             int64_t num_replicas) {
    return start(name, text, num_replicas).get();
  }

  // What was compiled so far, in words; "": nothing. Waits for what was begun, and throws what went
  // wrong.
  std::string compiled() const;

 private:
  struct Program {
    std::string name, text;
    int64_t num_replicas;
  };
  // An interval of the log's seconds, and the excuse for not working meanwhile.
  class Busy;

  std::shared_ptr<PjrtExecutable> make(const Program& program);
  std::shared_ptr<PjrtExecutable> load(const std::string& key, const Program& program);
  std::shared_ptr<PjrtExecutable> compile(const Program& program);
  void keep(const std::string& key, const Program& program, const PjrtExecutable& executable);
  std::string key_of(const Program& program);
  void tell_begin(const std::string& what);
  void note(const Program& program, const PjrtExecutable& executable, double seconds,
            bool is_from_cache);

  const PjrtClient& client_;
  const CompilerSettings settings_;
  std::optional<ExecutableCache> cache_;
  std::optional<ProgramKeys> keys_;  // once one is asked for
  std::once_flag keys_asked_for_;
  std::atomic<bool> keeps_ = true;  // the plugin can write executables

  mutable std::mutex mutex_;                                           // of all below
  std::map<std::pair<std::string, int64_t>, Executable> executables_;  // by text and replicas
  std::vector<std::thread> threads_;
  std::exception_ptr error_;  // the first one, which is that of all that follow
  struct Count {
    int64_t num = 0;
    double seconds = 0;  // the sum of all, also where several ran at once
  };
  Count made_, found_;                // found in the cache: a part of those made
  int64_t most_temporary_bytes_ = 0;  // of one executable
  int num_busy_ = 0;
  std::optional<heartbeat::Wait> excuse_;  // while any is compiled

  std::counting_semaphore<> jobs_;
};

}  // namespace skein
