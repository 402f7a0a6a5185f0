#include "skein/record/watch/event_command.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <deque>
#include <thread>
#include <vector>

#include "skein/base/error.h"
#include "skein/base/files/open_file.h"
#include "skein/base/machine/machine.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/log.h"
#include "skein/base/threads/mutex.h"
#include "skein/base/threads/quiet_thread.h"
#include "skein/record/files/event_fields.h"
#include "skein/record/files/jsonl.h"

namespace skein {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kLook = std::chrono::milliseconds(200);  // between looks at events.jsonl
constexpr size_t kLongestVariable = 4096;
constexpr int64_t kMostToldBytes = 4096;

bool is_for_people(const Json& event) {
  constexpr const char* kRoutine[] = {"start",      "checkpoint_begin", "checkpoint_commit",
                                      "validation", "evaluation",       "spike",
                                      "epoch"};
  const std::string name = text_or(event, "event", "");
  const bool regroups = name == "stop" && text_or(event, "reason", "") == "regroup";
  return !name.empty() && !regroups &&
         std::find(std::begin(kRoutine), std::end(kRoutine), name) == std::end(kRoutine);
}

std::vector<std::string> environment_of(const Json& event, const fs::path& run_dir) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (!std::string_view(*variable).starts_with("SKEIN_EVENT")) variables.emplace_back(*variable);
  }
  const auto add = [&](const std::string& name, std::string value) {
    std::replace(value.begin(), value.end(), '\0', ' ');
    variables.push_back(name + "=" + value.substr(0, kLongestVariable));
  };
  add("SKEIN_RUN_DIR", fs::absolute(run_dir).string());
  add("SKEIN_EVENT", text_or(event, "event", ""));
  for (const auto& [key, value] : event.items()) {
    if (!value.is_primitive() || value.is_null()) continue;
    std::string name = "SKEIN_EVENT_";
    for (const char c : key) {
      name +=
          static_cast<char>(std::isalnum(static_cast<unsigned char>(c)) ? std::toupper(c) : '_');
    }
    add(name, value.is_string() ? value.get<std::string>() : json_text(value));
  }
  return variables;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// A file without a name that holds `text`, at its beginning: unlike a pipe it never fills up.
FileDescriptor file_with(const std::string& text) {
  FileDescriptor file(::memfd_create("skein-event", MFD_CLOEXEC));
  if (file.get() < 0) fail(errno_code(errno), "cannot make its input: {}", errno_text(errno));
  write_all(file.get(), std::as_bytes(std::span(text)), "its input");
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// Starts `command` as a group of processes of its own. Throws Error{kIo}.
pid_t start(const std::string& command, const Json& event, const fs::path& run_dir) {
  const FileDescriptor input = file_with(json_text(event) + "\n");
  const fs::path log = run_dir / "logs" / "on_event.log";
  std::error_code ignored;
  fs::create_directories(log.parent_path(), ignored);
  const FileDescriptor output = open_to_append(log);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output.get(), STDERR_FILENO);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  std::vector<std::string> arguments = {"sh", "-c", command};
  std::vector<std::string> environment = environment_of(event, run_dir);
  pid_t pid = -1;
  const int refused = ::posix_spawn(&pid, "/bin/sh", &actions, &attributes,
                                    pointers(arguments).data(), pointers(environment).data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  if (refused != 0) fail(ErrorCode::kIo, "cannot start /bin/sh: {}", errno_text(refused));
  return pid;
}

// Returns what went wrong; empty: nothing.
std::string run(const std::string& command, const Json& event, const fs::path& run_dir,
                Clock::time_point deadline) {
  const pid_t pid = start(command, event, run_dir);
  const FileDescriptor process(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  struct pollfd entry {
    process.get(), POLLIN, 0
  };
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  const bool ended = ::poll(&entry, 1, std::max(0, static_cast<int>(left.count()))) > 0;
  if (!ended) ::kill(-pid, SIGKILL);  // with all that it started
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) return "did not end in time and was killed";
  if (WIFSIGNALED(status)) return fmt::format("was killed by signal {}", WTERMSIG(status));
  return WEXITSTATUS(status) == 0 ? ""
                                  : fmt::format("ended with exit code {}", WEXITSTATUS(status));
}

}  // namespace

class EventCommand::Teller {
 public:
  Teller(const fs::path& run_dir, const std::string& command, std::chrono::milliseconds deadline)
      : run_dir_(run_dir), command_(command), deadline_(deadline), tail_(events_file()) {
    tail_ = JsonlTail(events_file(), size_of_events());
    thread_ = quiet_thread([this] { tell(); });
  }

  ~Teller() {
    {
      const Lock lock(mutex_);
      stops_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void lead(bool leads) {
    const Lock lock(mutex_);
    leads_ = leads;
    changed_.notify_all();
  }

 private:
  struct WaitingEvent {
    Json event;
    int64_t end = 0;  // of what was read of the file with it
  };

  // 0 where there are none yet. What cannot be looked at is no empty file, whose events would all
  // be told again.
  int64_t size_of_events() const {
    std::error_code problem;
    const std::uintmax_t size = fs::file_size(events_file(), problem);
    if (!problem) return static_cast<int64_t>(size);
    if (is_absence(problem.value())) return 0;
    fail(errno_code(problem.value()), "cannot stat {}: {}", events_file().string(),
         errno_text(problem.value()));
  }
  fs::path events_file() const { return run_dir_ / "events.jsonl"; }
  fs::path told_file() const { return run_dir_ / ".events_told"; }

  void tell() {
    bool led = false;
    for (;;) {
      bool leads = false, stops = false;
      {
        Lock lock(mutex_);
        changed_.wait_for(lock, kLook, [this]() SKEIN_REQUIRES(mutex_) { return stops_; });
        leads = leads_, stops = stops_;
      }
      if (stops && !give_up_at_) give_up_at_ = Clock::now() + deadline_;
      try {
        const bool takes_over = leads && !led;
        if (takes_over) go_on_from_what_was_told();
        led = leads;  // not before it is known from where
        if (leads) tell_what_is_new(takes_over);
      } catch (const std::exception& problem) {
        say(problem.what());
      }
      if (stops) return;
    }
  }

  // Another machine told before, or an earlier launch.
  void go_on_from_what_was_told() {
    const std::optional<std::string> told = read_file_if_there(told_file(), kMostToldBytes);
    if (!told || told->empty()) return;
    tail_ = JsonlTail(events_file(), std::max<int64_t>(std::atoll(told->c_str()), 0));
  }

  // A machine that the others went on without learns from their generation that it leads no more.
  void tell_what_is_new(bool takes_over) {
    const int64_t before = tail_.offset();
    std::deque<Json> waiting;
    size_t left_out = 0;
    std::string leader = node_name();
    tail_.read([&](const Json& event) {
      if (text_or(event, "event", "") == "generation") leader = text_or(event, "host", leader);
      if (!is_for_people(event)) return;
      waiting.push_back(event);
      if (waiting.size() <= kMostWaiting) return;
      waiting.pop_front();
      ++left_out;
    });
    if (!takes_over && leader != node_name()) return lead(false);
    if (left_out > 0) {
      log::warn("launch.on_event: {} events at once; the command is not called for the first {}",
                left_out + waiting.size(), left_out);
    }
    for (const Json& event : waiting) tell(event);
    if (tail_.offset() == before) return;
    write_file_atomic(told_file(), std::to_string(tail_.offset()) + "\n");
  }

  void tell(const Json& event) {
    const auto deadline =
        std::min(give_up_at_.value_or(Clock::time_point::max()), Clock::now() + deadline_);
    const std::string problem = run(command_, event, run_dir_, deadline);
    if (!problem.empty()) say(fmt::format("`{}` {}", command_, problem));
  }

  void say(const std::string& problem) {
    if (std::exchange(said_, true)) return;
    log::warn("launch.on_event: {}; what it printed is in {}. This line is printed once", problem,
              (run_dir_ / "logs" / "on_event.log").string());
  }

  const fs::path run_dir_;
  const std::string command_;
  const std::chrono::milliseconds deadline_;
  JsonlTail tail_;
  bool said_ = false;
  std::optional<Clock::time_point> give_up_at_;
  Mutex mutex_;
  std::condition_variable_any changed_;
  bool leads_ SKEIN_GUARDED_BY(mutex_) = false;
  bool stops_ SKEIN_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

EventCommand::EventCommand(const fs::path& run_dir, const std::string& command,
                           std::chrono::milliseconds deadline)
    : teller_(std::make_unique<Teller>(run_dir, command, deadline)) {}
EventCommand::~EventCommand() = default;
void EventCommand::lead(bool leads) { teller_->lead(leads); }

}  // namespace skein
