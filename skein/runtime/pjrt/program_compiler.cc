#include "skein/runtime/pjrt/program_compiler.h"

#include <algorithm>
#include <chrono>

#include "skein/base/error.h"
#include "skein/base/text/units.h"

namespace skein {

ProgramCompiler::ProgramCompiler(const PjrtClient& client, const PjrtOptions&) : client_(client) {}

std::shared_ptr<PjrtExecutable> ProgramCompiler::executable(const std::string& name,
                                                            const std::string& text,
                                                            int64_t num_replicas) {
  std::promise<std::shared_ptr<PjrtExecutable>> promise;
  {
    std::unique_lock lock(mutex_);
    const auto [entry, is_new] = executables_.try_emplace({text, num_replicas});
    if (!is_new) {
      const Executable other = entry->second;
      lock.unlock();
      return other.get();
    }
    entry->second = promise.get_future().share();
  }
  try {
    auto executable = compile(name, text, num_replicas);
    promise.set_value(executable);
    return executable;
  } catch (...) {
    promise.set_exception(std::current_exception());
    throw;
  }
}

std::shared_ptr<PjrtExecutable> ProgramCompiler::compile(const std::string& name,
                                                         const std::string& text,
                                                         int64_t num_replicas) {
  const auto start = std::chrono::steady_clock::now();
  std::shared_ptr<PjrtExecutable> executable;
  try {
    executable = client_.compile(text, num_replicas);
  } catch (const Error& error) {
    fail(error.code(), "program {}: {}", name, error.what());
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  const int64_t temporary_bytes = executable->memory().temporary_bytes;
  const std::lock_guard lock(mutex_);
  ++num_compiled_;
  compile_seconds_ += took.count();
  most_temporary_bytes_ = std::max(most_temporary_bytes_, temporary_bytes);
  return executable;
}

std::string ProgramCompiler::compiled() const {
  const std::lock_guard lock(mutex_);
  if (num_compiled_ == 0) return {};
  return fmt::format(
      "compiled {} for {} in {:.1f} s; the compiler takes up to {} for temporary arrays",
      counted(num_compiled_, "program"), client_.platform(), compile_seconds_,
      format_bytes(most_temporary_bytes_));
}

}  // namespace skein
