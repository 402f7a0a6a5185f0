"""Faults at calls on the files of a run: the plan that file_faults.cc goes by, and runs that are small enough
to be struck a thousand times."""
import collections
import ctypes
import errno
import mmap
import os
import subprocess

from supervised import weights

KINDS = ["create", "write", "truncate", "sync", "make folder", "rename", "exchange", "link", "unlink",
         "remove folder"]
KILL, ERROR, SHORT_WRITE, STALE = range(4)
MOST_POINTS = 2048

# Within the numbers that a save of two ranks may have, and with one worker alone the least.
LAYOUTS = {
    "one worker": {},
    "data 2, ZeRO 1": {"launch.workers": 2},
    "data 2, ZeRO 3": {"launch.workers": 2, "parallel.zero": 3},
    "tensor 2": {"launch.workers": 2, "parallel.tensor": 2},
    "pipeline 2": {"launch.workers": 2, "parallel.pipeline": 2},
    "context 2": {"launch.workers": 2, "parallel.context": 2},
    "data 2, keep 1": {"launch.workers": 2, "checkpoint.keep": 1, "checkpoint.async": "false"},
}

SETTINGS = {"model.hidden_size": 16, "model.intermediate_size": 16, "model.num_hidden_layers": 2,
            "model.num_attention_heads": 2, "model.num_key_value_heads": 2,
            "model.max_position_embeddings": 64, "data.sequence_length": 32, "batch.global_sequences": 4,
            "optimizer.warmup_steps": 2, "optimizer.decay_steps": 1000, "checkpoint.every_steps": 1, "checkpoint.keep": 2,
            "checkpoint.memory_every_steps": 0, "launch.health_checks": "false",
            "launch.max_restarts": 100000, "device.threads": 1, "log.tensorboard": "false"}


class Point(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int32) for name in ("rank", "elsewhere", "index", "after", "action", "error")] + [
        ("first_step", ctypes.c_int64), ("fired", ctypes.c_int64), ("kind", ctypes.c_int32),
        ("path", ctypes.c_char * 100)]


class Plan(ctypes.Structure):
    _fields_ = [("folder", ctypes.c_char * 512), ("log", ctypes.c_char * 512), ("gap", ctypes.c_int64),
                ("armed_step", ctypes.c_int64), ("most_in_save", ctypes.c_int64 * 16),
                ("most_elsewhere", ctypes.c_int64 * 16), ("num_points", ctypes.c_int64),
                ("next", ctypes.c_int64), ("points", Point * MOST_POINTS)]


class Record(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_int32), ("rank", ctypes.c_int32)] + [
        (name, ctypes.c_uint64) for name in ("inode", "other", "folder", "to_folder")] + [
        ("offset", ctypes.c_int64), ("bytes", ctypes.c_int64), ("name_bytes", ctypes.c_uint32),
        ("to_bytes", ctypes.c_uint32)]


Address = collections.namedtuple("Address", "rank elsewhere index after action error",
                                 defaults=(0, 0, 0, 0, KILL, 0))


class Faults:
    """A plan in a file that skein's processes share."""

    def __init__(self, file, run, addresses=(), first_step=3, gap=3, log=""):
        if len(addresses) > MOST_POINTS:
            raise ValueError(f"{len(addresses)} points: expected at most {MOST_POINTS}")
        with open(file, "wb") as out:
            out.write(bytes(ctypes.sizeof(Plan)))
        with open(file, "r+b") as both:
            self.memory = mmap.mmap(both.fileno(), 0)
        self.file, self.plan = file, Plan.from_buffer(self.memory)
        self.plan.folder, self.plan.log = (run.rstrip("/") + "/").encode(), log.encode()
        self.plan.armed_step, self.plan.gap = first_step, gap
        self.plan.num_points = len(addresses)
        for point, address in zip(self.plan.points, addresses):
            for name, value in address._asdict().items():
                setattr(point, name, value)

    def environment(self, skein):
        library = os.path.join(os.path.dirname(os.path.abspath(skein)), "libskein_file_faults.so")
        if not os.path.exists(library):
            raise FileNotFoundError(f"{library} is not built: expected it beside {skein}; "
                                    "ninja -C build skein_file_faults")
        return dict(os.environ, LD_PRELOAD=library, SKEIN_FILE_FAULTS=self.file)

    def points(self):
        return list(self.plan.points[:self.plan.num_points])

    def most(self, rank, elsewhere=False):
        return (self.plan.most_elsewhere if elsewhere else self.plan.most_in_save)[rank + 1]


def describe(point):
    what = "a short write" if point.action == SHORT_WRITE else (
        "kill -9" if point.action == KILL else errno.errorcode[point.error])
    return f"{what} {'after' if point.after else 'at'} call {point.index} of rank {point.rank}, " \
           f"{KINDS[point.kind]} {point.path.decode()}"


def command(skein, folder, data, run, steps, settings):
    config = os.path.join(folder, "empty.toml")
    open(config, "a").close()
    every = {"run.dir": run, "run.steps": steps, "data.train": f"{data}/corpus.arrow",
             "data.tokenizer": f"{data}/tokenizer", **SETTINGS, **settings}
    return [skein, "train", config] + [part for key, value in every.items() for part in ("--set", f"{key}={value}")]


def train(skein, folder, data, run, steps, settings, faults=None):
    """One process of skein train, to its end: its exit code and what it said."""
    done = subprocess.run(command(skein, folder, data, run, steps, settings), text=True, timeout=3600,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          env=faults.environment(skein) if faults else None)
    return done.returncode, done.stderr


def quiet_run(skein, folder, data, name, steps, settings):
    """A run without faults that saves only at its end."""
    run = os.path.join(folder, name)
    code, said = train(skein, folder, data, run, steps, {**settings, "checkpoint.every_steps": steps})
    if code != 0:
        raise RuntimeError(f"{run} ended with {code}: {said[-2000:]}")
    return run


def numbers(record):
    return record["loss"], record["grad_norm"], record["param_norm"]


def same_weights(skein, one, other, steps):
    return weights(skein, one, steps) == weights(skein, other, steps)


def table(head, rows):
    widths = [max(len(str(row[i])) for row in [head, *rows]) for i in range(len(head))]
    lines = ["  ".join(str(cell).ljust(width) if i == 0 else str(cell).rjust(width)
                       for i, (cell, width) in enumerate(zip(row, widths))) for row in [head, *rows]]
    return "\n".join(line.rstrip() for line in lines)
