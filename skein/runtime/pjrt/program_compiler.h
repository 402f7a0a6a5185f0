// Makes executables of programs' text, each text once.
//
// Threads  any number of threads may ask; different texts are compiled at the same time, and who
//          asks for a text that is being compiled waits for it
// Errors   those of PjrtClient::compile, with the program's name. Whoever waited gets them too
#pragma once

#include <cstdint>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "skein/runtime/pjrt/pjrt_client.h"

namespace skein {

class ProgramCompiler {
 public:
  // `client` outlives this and every executable.
  ProgramCompiler(const PjrtClient& client, const PjrtOptions& options);

  // `name` is for messages; `num_replicas` devices run the text at once.
  std::shared_ptr<PjrtExecutable> executable(const std::string& name, const std::string& text,
                                             int64_t num_replicas);

  // What was compiled so far, in words; "": nothing.
  std::string compiled() const;

 private:
  using Executable = std::shared_future<std::shared_ptr<PjrtExecutable>>;

  std::shared_ptr<PjrtExecutable> compile(const std::string& name, const std::string& text,
                                          int64_t num_replicas);

  const PjrtClient& client_;
  mutable std::mutex mutex_;                                           // of all below
  std::map<std::pair<std::string, int64_t>, Executable> executables_;  // by text and replicas
  int64_t num_compiled_ = 0;
  double compile_seconds_ = 0;        // of all compilations, also where several ran at once
  int64_t most_temporary_bytes_ = 0;  // of one executable
};

}  // namespace skein
