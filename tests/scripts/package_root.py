"""A root folder that a program is run in, with as much of a machine around it as is asked for; and the
job by which package_places.py judges a program there.

Each command has its own process and mount namespaces: it is process 1, as in a container, and sees /proc,
a /dev of null, urandom and shm (64 MB), and an empty /tmp. Needs root, or user namespaces.
"""
import json
import os
import shutil
import subprocess
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent.parent
WITHOUT_ROOT = [] if os.geteuid() == 0 else ["--map-root-user"]
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
DEADLINE_S = 300

ENTER = """
set -e
root=$1 work=$2 user=$3 options=$4 cache=$5
shift 5
mount --make-rprivate /
mount --bind "$root" "$root"
[ ! -d "$root/job" ] || mount --bind "$work" "$root/job"
[ -z "$cache" ] || mount --bind "$cache" "$root/cache"
case $options in *proc*) mount -t proc proc "$root/proc" ;; esac
case $options in *dev*)
  mount -t tmpfs -o mode=755 tmpfs "$root/dev"
  mkdir "$root/dev/shm"
  for name in null urandom; do touch "$root/dev/$name"; mount --bind "/dev/$name" "$root/dev/$name"; done
  ln -s /proc/self/fd "$root/dev/fd"
  mount -t tmpfs -o size=64m,mode=1777 tmpfs "$root/dev/shm"
  mount -t tmpfs -o mode=1777 tmpfs "$root/tmp" ;;
esac
case $options in *no-network*) ip link set lo up ;; esac
case $options in *read-only*) mount -o remount,bind,ro "$root" ;; esac
exec chroot ${user:+--userspec=$user --groups=} "$root" "$@"
"""

JOB = """
[run]
dir = "/job/whole"
steps = 120
[model]
hidden_size = 64
intermediate_size = 176
num_hidden_layers = 2
num_attention_heads = 4
[data]
train = "/job/corpus.arrow"
tokenizer = "/job/tokenizer"
sequence_length = 64
[batch]
global_sequences = 4
[optimizer]
warmup_steps = 1
decay_steps = 100
[checkpoint]
every_steps = 20
[launch]
workers = 2
[device]
threads = 1
"""


TRACE = """
#include <stdlib.h>
#include <unistd.h>
int main(int argc, char** argv) {
  setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
  return execv(argv[1], argv + 1);
}
"""


class Failed(Exception):
    pass


class Root:
    """`program`: as the commands below name it; `options`: of "proc dev no-network read-only"; `cache`: a folder of
    this machine that is seen as /cache."""

    def __init__(self, path, program, user="", options="proc dev", environment=None, cache=""):
        self.path, self.program, self.user, self.options = Path(path), program, user, options
        self.cache = cache
        self.environment = {"PATH": PATH, "HOME": "/tmp", **(environment or {})}
        self.work = self.path.parent / (self.path.name + ".work")
        shutil.rmtree(self.work, ignore_errors=True)
        self.work.mkdir(parents=True)
        self.work.chmod(0o1777)
        for name in ("proc", "dev", "tmp", "job", *(["cache"] if cache else [])):
            (self.path / name).mkdir(parents=True, exist_ok=True)

    def command(self, words):
        namespaces = ["unshare", *WITHOUT_ROOT, "--mount", "--pid", "--fork", "--kill-child"]
        if "no-network" in self.options:
            namespaces.append("--net")
        return [*namespaces, "/bin/sh", "-c", ENTER, "enter", self.path, self.work, self.user, self.options, self.cache,
                *words]

    def start(self, *words):
        return subprocess.Popen(self.command([self.program, *words]), env=self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def run(self, *words, expected=0, environment=None, program=None):
        """What it prints, output and errors together."""
        done = subprocess.run(self.command([program or self.program, *words]),
                              env={**self.environment, **(environment or {})}, timeout=DEADLINE_S,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != expected:
            raise Failed(f"{self.path.name}: {' '.join(map(str, words))} ended with {done.returncode}, "
                         f"expected {expected}:\n{done.stdout}")
        return done.stdout

    def libraries(self):
        """What the program is loaded with: {name: path}. The variable that asks is for it alone."""
        subprocess.run(["cc", "-static", "-x", "c", "-", "-o", self.work / "trace"], input=TRACE, text=True, check=True)
        text = self.run(self.program, "version", program="/job/trace")
        lines = [line.split() for line in text.splitlines() if "=>" in line]
        return {words[0]: words[2] for words in lines}

    # Folders that the job writes, as this machine sees them.
    def losses(self, name):
        rows = {}
        for line in (self.work / name / "metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            rows[row["step"]] = (row["loss"], row["grad_norm"], row["param_norm"])
        return rows

    def num_steps(self, name):
        try:
            return (self.work / name / "metrics.jsonl").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0


def children_of(pid):
    text = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(pid)], capture_output=True, text=True).stdout
    return [(int(line.split()[0]), line.split()[1]) for line in text.splitlines()]


def workers_of(pid):
    """The supervisor, a program named skein below `pid`, and its workers, which must be named so, too."""
    for child, name in children_of(pid):
        if name == "skein":
            return child, [worker for worker, its in children_of(child) if its == "skein"]
        found = workers_of(child)
        if found:
            return found
    return None


def wait_until(run, is_true, what):
    end = time.monotonic() + DEADLINE_S
    while not is_true():
        if run.poll() is not None:
            raise Failed(f"the run ended before {what}:\n{run.stdout.read()}")
        if time.monotonic() > end:
            run.kill()
            raise Failed(f"waited for {DEADLINE_S} s until {what}")
        time.sleep(0.002)


def kill_a_worker(root, run, after_steps):
    wait_until(run, lambda: root.num_steps("struck") >= after_steps, f"step {after_steps}")
    supervisor, workers = workers_of(run.pid) or (None, [])
    if len(workers) != 2:
        raise Failed(f"the supervisor {supervisor} has the workers {workers}, expected two named skein")
    os.kill(workers[1], 9)


def kill_the_supervisor(root, run, after_steps):
    wait_until(run, lambda: root.num_steps("struck") >= after_steps, f"step {after_steps}")
    supervisor, _ = workers_of(run.pid)
    os.kill(supervisor, 9)  # process 1 of its namespace: all others end with it
    run.communicate(timeout=DEADLINE_S)


def do_the_job(root, *settings):
    """Text to an exported model, by two workers; a run in which a worker and then the supervisor are killed
    has the same numbers as one in which nothing happens."""
    text = "".join(page.read_text() for page in sorted((REPOSITORY / "docs").glob("*.md")))
    (root.work / "text.txt").write_text(text)
    (root.work / "run.toml").write_text(JOB)
    root.run("data", "ingest", "--out", "/job/corpus.arrow", "/job/text.txt")
    root.run("data", "tokenizer", "--vocab-size", "512", "--out", "/job/tokenizer", "/job/corpus.arrow")
    root.run("plan", "/job/run.toml", "--ranks", "2")
    given = [word for setting in settings for word in ("--set", setting)]
    root.run("train", "/job/run.toml", *given)

    struck = ["train", "/job/run.toml", "--set", "run.dir=/job/struck", *given]
    run = root.start(*struck)
    kill_a_worker(root, run, after_steps=30)
    kill_the_supervisor(root, run, after_steps=75)
    root.run(*struck)
    whole, again = root.losses("whole"), root.losses("struck")
    if sorted(whole) != list(range(1, 121)) or whole != again:
        wrong = [step for step in whole if whole[step] != again.get(step)]
        raise Failed(f"{root.path.name}: steps {wrong[:5]} differ from those of the run that nobody struck")
    report = root.run("report", "/job/struck")
    if "signal 9" not in report:
        raise Failed(f"{root.path.name}: the report does not name the kill:\n{report}")
    root.run("checkpoint", "verify", "/job/struck")
    root.run("checkpoint", "export", "/job/struck", "--out", "/job/hf")
    if not root.run("generate", "--model", "/job/hf", "--prompt", "A run", "--max-tokens", "5").strip():
        raise Failed(f"{root.path.name}: generate prints nothing")
