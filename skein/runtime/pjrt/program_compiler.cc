#include "skein/runtime/pjrt/program_compiler.h"

#include <algorithm>

#include "skein/base/error.h"
#include "skein/base/machine/clock.h"
#include "skein/base/text/log.h"
#include "skein/base/text/units.h"
#include "skein/base/threads/call_within.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/runtime/pjrt/compile_options.h"

namespace skein {
namespace {

constexpr double kForEver = 1e9;  // seconds

// One of the programs that are compiled at a time.
class Job {
 public:
  explicit Job(std::counting_semaphore<>& all) : all_(all) { all_.acquire(); }
  ~Job() { all_.release(); }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

 private:
  std::counting_semaphore<>& all_;
};

}  // namespace

// A worker whose compiler works is not hung: the supervisor waits as long as this does.
class ProgramCompiler::Busy {
 public:
  explicit Busy(ProgramCompiler& compiler) : compiler_(compiler) {
    const double timeout_s = compiler_.settings_.timeout_s;
    const std::lock_guard lock(compiler_.mutex_);
    ++compiler_.num_busy_;
    compiler_.excuse_.reset();
    compiler_.excuse_.emplace(timeout_s > 0 ? timeout_s : kForEver);
  }
  ~Busy() {
    const std::lock_guard lock(compiler_.mutex_);
    if (--compiler_.num_busy_ == 0) compiler_.excuse_.reset();
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  ProgramCompiler& compiler_;
};

ProgramCompiler::ProgramCompiler(const PjrtClient& client, const PjrtOptions& options)
    : client_(client), settings_(options.compiler), jobs_(std::max(1, settings_.num_jobs)) {
  compile_options(1, settings_.level);  // a mistake is found before anything is compiled
  if (settings_.cache_folder.empty()) return;
  cache_.emplace(settings_.cache_folder, settings_.cache_bytes, settings_.shared);
}

ProgramCompiler::~ProgramCompiler() {
  for (std::thread& thread : threads_) thread.join();
}

ProgramCompiler::Executable ProgramCompiler::start(const std::string& name, const std::string& text,
                                                   int64_t num_replicas) {
  std::unique_lock lock(mutex_);
  const auto [entry, is_new] = executables_.try_emplace({text, num_replicas});
  if (!is_new) return entry->second;
  std::packaged_task<std::shared_ptr<PjrtExecutable>()> task(
      [this, program = Program{name, text, num_replicas}] { return make(program); });
  Executable result = entry->second = task.get_future().share();
  if (settings_.num_jobs > 1) {
    threads_.push_back(quiet_thread(std::move(task)));
    return result;
  }
  lock.unlock();
  task();
  result.get();  // throws what went wrong
  return result;
}

std::shared_ptr<PjrtExecutable> ProgramCompiler::make(const Program& program) {
  const Job job(jobs_);
  try {
    {
      const std::lock_guard lock(mutex_);
      if (error_) std::rethrow_exception(error_);
    }
    const auto start = Clock::now();
    const Busy busy(*this);
    const std::string key = cache_ ? key_of(program) : "";
    std::shared_ptr<PjrtExecutable> executable = cache_ ? load(key, program) : nullptr;
    const bool is_from_cache = executable != nullptr;
    if (!is_from_cache) executable = compile(program);
    note(program, *executable, seconds_since(start), is_from_cache);
    if (cache_ && !is_from_cache) keep(key, program, *executable);
    return executable;
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = std::current_exception();
    throw;
  }
}

std::string ProgramCompiler::key_of(const Program& program) {
  std::call_once(keys_asked_for_, [&] { keys_.emplace(client_, settings_.level); });
  return keys_->key(program.text, program.num_replicas);
}

// Null: it has to be compiled.
std::shared_ptr<PjrtExecutable> ProgramCompiler::load(const std::string& key,
                                                      const Program& program) {
  const auto found = cache_->find(key, program.name);
  if (!found) return nullptr;
  try {
    return client_.load(*found);
  } catch (const Error& error) {
    cache_->refuse(key, program.name, error.what());
    return nullptr;
  }
}

std::shared_ptr<PjrtExecutable> ProgramCompiler::compile(const Program& program) {
  const std::string what = fmt::format("the program {}, {} of StableHLO", program.name,
                                       format_bytes(std::ssize(program.text)));
  tell_begin(what);
  const auto call = [client = &client_, level = settings_.level, text = program.text,
                     num_replicas = program.num_replicas] {
    return std::shared_ptr<PjrtExecutable>(client->compile(text, num_replicas, level));
  };
  std::optional<std::shared_ptr<PjrtExecutable>> compiled;
  try {
    compiled = call_within<std::shared_ptr<PjrtExecutable>>(settings_.timeout_s, call);
  } catch (const Error& error) {
    fail(error.code(), "{}: {}", what, error.what());
  }
  if (compiled) return *compiled;
  fail(ErrorCode::kInternal,
       "{}: the compiler of {} has not ended after {}, device.compile_timeout_s: expected it to "
       "end; set a longer time, 0 for none, or a lower device.optimization_level",
       what, client_.platform(), format_duration(settings_.timeout_s));
}

// The last word of a process that the compiler takes along, or that is killed for its memory.
void ProgramCompiler::tell_begin(const std::string& what) {
  if (!settings_.on_begin) return log::debug_to_file(fmt::format("compiling {}", what));
  const std::lock_guard lock(mutex_);
  settings_.on_begin(what);
}

void ProgramCompiler::keep(const std::string& key, const Program& program,
                           const PjrtExecutable& executable) {
  if (!keeps_) return;
  std::string bytes;
  try {
    bytes = executable.serialized();
  } catch (const Error& error) {
    if (keeps_.exchange(false)) {
      log::warn("compiled programs are not kept for the next start: {}", error.what());
    }
    return;
  }
  cache_->add(key, program.name, bytes);
}

void ProgramCompiler::note(const Program& program, const PjrtExecutable& executable, double seconds,
                           bool is_from_cache) {
  const int64_t temporary_bytes = executable.memory().temporary_bytes;
  const std::lock_guard lock(mutex_);
  const auto add = [&](Count& count) {
    ++count.num;
    count.seconds += seconds;
  };
  add(made_);
  if (is_from_cache) add(found_);
  most_temporary_bytes_ = std::max(most_temporary_bytes_, temporary_bytes);
  if (settings_.on_made) settings_.on_made({program.name, seconds, is_from_cache});
}

std::string ProgramCompiler::compiled() const {
  std::unique_lock lock(mutex_);
  const auto all = executables_;
  lock.unlock();
  for (const auto& [text, executable] : all) executable.get();
  lock.lock();
  if (made_.num == 0) return {};
  const std::string cached = cache_ ? fmt::format(", {} of them from the cache ({}) in {:.2f} s",
                                                  found_.num, cache_->place(), found_.seconds)
                                    : "";
  return fmt::format(
      "compiled {} for {} in {:.2f} s{}; the compiler takes up to {} for temporary arrays",
      counted(made_.num, "program"), client_.platform(), made_.seconds, cached,
      format_bytes(most_temporary_bytes_));
}

}  // namespace skein
