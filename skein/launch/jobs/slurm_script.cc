#include "skein/launch/jobs/slurm_script.h"

#include <charconv>
#include <optional>

#include "skein/base/ending.h"
#include "skein/base/error.h"
#include "skein/base/text/json_text.h"
#include "skein/base/text/shell_words.h"

namespace skein {
namespace {

// sbatch knows quotes in its lines, but no way to write one inside them.
std::string directive(const std::string& option) {
  for (const char c : option) {
    if (static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\'' || c == '\\') {
      fail(ErrorCode::kUsage,
           "{}: a line of #SBATCH cannot hold quotes, backslashes and line breaks",
           json_text(OrderedJson(option)));
    }
  }
  const bool is_plain = option.find_first_of(" #;") == std::string::npos;
  const size_t equals = option.find('=');
  if (is_plain || equals == std::string::npos) return fmt::format("#SBATCH {}\n", option);
  return fmt::format("#SBATCH {}=\"{}\"\n", option.substr(0, equals), option.substr(equals + 1));
}

// In names of output files % begins a symbol.
std::string without_symbols(const fs::path& path) {
  std::string text;
  for (const char c : path.string()) text += c == '%' ? std::string("%%") : std::string(1, c);
  return text;
}

std::string directives(const SlurmJob& job) {
  std::vector<std::string> options = {"--job-name=" + job.name};
  const bool is_elastic = job.min_nodes < job.max_nodes;
  options.push_back(is_elastic ? fmt::format("--nodes={}-{}", job.min_nodes, job.max_nodes)
                               : fmt::format("--nodes={}", job.max_nodes));
  // With it, a range of nodes would get the fewest.
  if (!is_elastic) options.push_back("--ntasks-per-node=1");
  options.push_back(fmt::format("--cpus-per-task={}", job.cpus_per_node));
  if (job.gpus_per_node > 0) {
    options.push_back(fmt::format("--gpus-per-node={}", job.gpus_per_node));
  }
  if (!job.time.empty()) options.push_back("--time=" + job.time);
  options.push_back("--requeue");
  if (is_elastic) options.push_back("--no-kill");
  options.push_back("--open-mode=append");
  options.push_back(fmt::format("--signal=USR1@{}", job.grace_s));
  options.push_back("--chdir=" + job.working_dir.string());
  const std::string run = without_symbols(job.run_dir);
  if (job.tasks.empty()) {
    options.push_back(fmt::format("--output={}/logs/slurm-%j.log", run));
  } else {
    const std::string limit = job.at_most > 0 ? fmt::format("%{}", job.at_most) : "";
    options.push_back(fmt::format("--array=0-{}{}", job.tasks.size() - 1, limit));
    options.push_back(fmt::format("--output={}/%4a/logs/slurm-%A_%a.log", run));
  }
  options.insert(options.end(), job.options.begin(), job.options.end());
  std::string text;
  for (const std::string& option : options) text += directive(option);
  return text;
}

// What each task of an array adds to the command.
std::string settings(const SlurmJob& job) {
  std::string text = "case $SLURM_ARRAY_TASK_ID in\n";
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    text += fmt::format("  {}) settings=({}) ;;\n", i, shell_words(job.tasks[i]));
  }
  return text +
         "  *) echo \"skein launch: there is no run $SLURM_ARRAY_TASK_ID\" >&2; exit 2 ;;\n"
         "esac\n";
}

// Which job this is, in the words of scontrol, and its log.
std::string names(const SlurmJob& job) {
  const std::string run = shell_word(job.run_dir.string());
  if (job.tasks.empty()) {
    return fmt::format("job=$SLURM_JOB_ID\nlog={}/logs/slurm-$job.log\n", run);
  }
  return fmt::format(
      "job=${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID\n"
      "log={}/$(printf %04d \"$SLURM_ARRAY_TASK_ID\")/logs/slurm-$job.log\n",
      run);
}

constexpr std::string_view kSharedFolderCheck = R"sh(
# On a machine with another folder of that name a supervisor would wait for the others in vain.
srun sh -c '[ -e "$0" ] || {
  echo "skein launch: node $SLURMD_NODENAME does not see $0:" \
       "run.dir must lie on a file system that all nodes share" >&2
  exit 2
}' "$log" || [ $? != 2 ] || exit 2
)sh";

constexpr std::string_view kLoop = R"sh(
# scancel, preemption and the end of the time send SIGTERM: then Slurm says what becomes of the job.
ended=
trap 'ended=yes' TERM

tries=0
while true; do
  code=0
  train || code=$?
  # 138: SIGUSR1 came before there was anything to save.
  if [ "$code" = @REQUEUE@ ] || [ "$code" = 138 ]; then break; fi
  # A mistake would come again.
  if [ "$code" = @DONE@ ] || [ "$code" = @USAGE@ ] || [ -n "$ended" ]; then exit "$code"; fi
  if [ "$tries" = @RETRIES@ ]; then exit "$code"; fi
  if [ "$(nodes)" -lt @NODES@ ]; then break; fi
  tries=$((tries + 1))
  echo "skein launch: it ended with $code: started again, $tries of @RETRIES@ times" >&2
  sleep "$((tries < 7 ? 1 << (tries - 1) : 60))"
done
if [ -n "$ended" ]; then exit "$code"; fi
echo "skein launch: it ended with $code: requeueing job $job" >&2
scontrol requeue "$job" && exit "$code"
echo "skein launch: Slurm did not requeue job $job: submit it again to resume" >&2
exit "$code"
)sh";

std::string filled_in(std::string text, std::string_view name, int64_t value) {
  for (size_t at = 0; (at = text.find(name, at)) != std::string::npos;) {
    text.replace(at, name.size(), std::to_string(value));
  }
  return text;
}

std::string loop(const SlurmJob& job) {
  std::string text = filled_in(std::string(kLoop), "@REQUEUE@", kExitRequeue);
  text = filled_in(text, "@DONE@", kExitDone);
  text = filled_in(text, "@USAGE@", kExitUsage);
  text = filled_in(text, "@NODES@", job.min_nodes);
  return filled_in(text, "@RETRIES@", job.retries);
}

// One supervisor a node. Where some nodes may be lost, the others go on; otherwise they need all,
// and have a while to save what they can after the first has ended.
std::string train(const SlurmJob& job) {
  const bool is_elastic = job.min_nodes < job.max_nodes;
  const std::string ends =
      is_elastic ? "--no-kill --wait=0" : fmt::format("--wait={}", job.grace_s);
  return fmt::format(
      "\n# How many nodes the job has: a lost one is taken from it.\n"
      "nodes() {{ squeue --noheader --format=%D --jobs \"$job\"; }}\n"
      "\ntrain() {{\n"
      "  srun --nodes=\"$(nodes)\" --ntasks-per-node=1 --cpus-per-task={} {} \\\n    {}{}\n}}\n",
      job.cpus_per_node, ends, shell_words(job.command),
      job.tasks.empty() ? "" : " \"${settings[@]}\"");
}

void check_time(const SlurmJob& job) {
  if (job.time.empty()) return;
  const int64_t seconds = slurm_seconds(job.time);
  if (seconds >= 2 * job.grace_s) return;
  fail(ErrorCode::kUsage,
       "--time {} is {} s, and --grace lets the run save {} s before its end: expected at least "
       "twice that, or each start would do little but save",
       job.time, seconds, job.grace_s);
}

}  // namespace

fs::path sweep_run_dir(const fs::path& run_dir, size_t index) {
  return run_dir / fmt::format("{:04}", index);
}

int64_t slurm_seconds(const std::string& time) {
  const auto wrong = [&]() -> int64_t {
    fail(ErrorCode::kUsage,
         "--time is \"{}\": expected minutes, hours:minutes:seconds or days-hours, such as 90, "
         "12:00:00 or 2-12",
         time.substr(0, 100));
  };
  const size_t dash = time.find('-');
  std::vector<int64_t> parts;
  std::string_view rest = time;
  int64_t days = 0;
  const auto number = [&](std::string_view text) -> std::optional<int64_t> {
    int64_t value = 0;
    const auto [stop, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || stop != text.data() + text.size() || value < 0 || value > 1e9) {
      return std::nullopt;
    }
    return value;
  };
  if (dash != std::string::npos) {
    const auto found = number(rest.substr(0, dash));
    if (!found) return wrong();
    days = *found;
    rest.remove_prefix(dash + 1);
  }
  for (bool more = true; more;) {
    const size_t colon = rest.find(':');
    const auto found = number(rest.substr(0, colon));
    if (!found || parts.size() == 3) return wrong();
    parts.push_back(*found);
    more = colon != std::string_view::npos;
    if (more) rest.remove_prefix(colon + 1);
  }
  // Behind days come hours; alone come minutes, unless there are three.
  const bool begins_with_hours = dash != std::string::npos || parts.size() == 3;
  int64_t seconds = days * 86'400, unit = begins_with_hours ? 3'600 : 60;
  for (const int64_t part : parts) {
    seconds += part * unit;
    unit /= 60;
  }
  return seconds;
}

std::string slurm_script(const SlurmJob& job) {
  check_time(job);
  const std::string said = job.tasks.empty() ? "" : settings(job);
  return "#!/bin/bash\n"
         "# Written by skein launch --slurm.\n" +
         directives(job) + "\nset -u\n" + names(job) + said +
         (job.max_nodes > 1 ? std::string(kSharedFolderCheck) : "") + train(job) + loop(job);
}

}  // namespace skein
