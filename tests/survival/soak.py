#!/usr/bin/env python3
"""Trains on several supervisors on this machine while faults happen, and compares with a quiet run.

  soak.py SKEIN FOLDER [--faults 30] [--every 2.0] [--seed 1] [--nodes 2] [--workers 2] [--steps N]
          [--min-nodes 2] [--context 1] [--namespaces] [--etcd] [--minutes M]

Each supervisor stands for a machine (SKEIN_NODE). With --namespaces, which needs root and `ip`, each has
a network of its own behind a bridge. With --etcd they meet in an etcd, which is started on the loopback
interface, instead of a folder. Faults, at random times, by seed:
  kill    SIGKILL to a worker           hang       SIGSTOP to a worker, for good
  pause   SIGSTOP to a worker, 1 s      host       SIGKILL to a supervisor, which is started again
  freeze  SIGSTOP to a supervisor, 3 s
  away    with --min-nodes: SIGKILL to a supervisor, which is started again 15 s later; the others go on
  sick    the same, but it is started at once with a disk on which fsync fails: its check fails, and it is
          left out until it is started again 15 s later
  link    with --namespaces: its link is down, 2 to 12 s
  store   with --etcd: SIGKILL to etcd, which is started again 3 s later
Afterwards every supervisor must end with 0, every step must have the loss that the quiet run had, and
the exported weights must be the same file. The run is asked to stop after the last fault, or with --minutes after
that time, and a quiet one does as many steps; with --steps it goes on to that step. Prints a line a fault and a table of recovery times.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from supervised import CONFIG, Etcd, Network, Node, events, losses, make_data, metrics, newest_step, send, weights


def generations(run):
    """How many generations trained with each number of machines."""
    sizes = collections.Counter(len(event["hosts"]) for event in events(run, "generation"))
    return ", ".join(f"{sizes[size]} of {size}" for size in sorted(sizes))


def strike(kind, node, etcd, chance):
    if kind == "store":
        etcd.stop()
        time.sleep(3)
        etcd.start()
        return "etcd"
    if kind in ("kill", "hang", "pause"):
        workers = node.workers()
        if not workers:
            return None
        pid = chance.choice(workers)
        if not send(pid, signal.SIGKILL if kind == "kill" else signal.SIGSTOP):
            return None
        if kind == "pause":
            time.sleep(1)
            send(pid, signal.SIGCONT)
        return f"worker {pid} of {node.name}"
    if kind == "link":
        node.network.cut(node.index, chance.uniform(2, 12))
        return f"link of {node.name}"
    if kind == "sick":
        node.process.kill()
        node.process.wait()
        node.start(sick=True)
        time.sleep(15)
        with open(node.log.name) as log:
            if "is left out: " not in log.read():
                raise RuntimeError(f"soak: {node.name} is sick and trains: see {node.log.name}")
    if kind in ("host", "away", "sick"):
        node.process.kill()
        node.process.wait()
        time.sleep(chance.uniform(0, 1) if kind == "host" else 15 if kind == "away" else 0)
        node.start()
        return f"supervisor of {node.name}"
    send(node.process.pid, signal.SIGSTOP)
    time.sleep(3)
    send(node.process.pid, signal.SIGCONT)
    return f"supervisor of {node.name}"


def wait_for_step(run, deadline):
    size, _ = newest_step(run)
    while newest_step(run)[0] == size and time.time() < deadline:
        time.sleep(0.02)


def train(args, data, name, nodes, faults, network, etcd, minutes=0):
    run = os.path.join(args.folder, name)
    config = os.path.join(args.folder, name + ".toml")
    text = CONFIG.format(dir=run, steps=args.steps, data=data, workers=args.workers, nodes=nodes,
                         ranks=args.nodes * args.workers // args.context, rendezvous=etcd.address(name),
                         sequences=2 * args.nodes * args.workers)
    with open(config, "w") as out:
        out.write(text.replace("[parallel]", f"[parallel]\ncontext = {args.context}"))
    is_stopped = args.stops and faults > 0  # the quiet run goes as far as the other did
    chance = random.Random(args.seed)
    count = args.nodes if nodes != "1" else 1
    machines = [Node(args.skein, config, f"{name}{i}", args.folder, network, i) for i in range(count)]
    times = {}
    wait_for_step(run, time.time() + 600)
    done = 0
    until = time.time() + 60 * minutes
    while ((time.time() < until if minutes else done < faults)
           and all(machine.process.poll() is None for machine in machines)):
        time.sleep(chance.expovariate(1 / args.every))
        kind = chance.choice(["kill", "kill", "hang", "pause", "host", "freeze"] +
                             (["link", "link"] if network.names else []) +
                             (["store", "store"] if etcd.process else []) +
                             (["away", "sick"] if args.min_nodes < args.nodes else []))
        before = time.time()
        struck = strike(kind, chance.choice(machines), etcd, chance)
        if struck is None or any(machine.process.poll() is not None for machine in machines):
            continue
        done += 1
        wait_for_step(run, time.time() + 600)
        took = time.time() - before
        times.setdefault(kind, []).append(took)
        print(f"{done:3} {kind:7} {struck:28} next step after {took:5.2f} s, "
              f"step {newest_step(run)[1]}", flush=True)
    if is_stopped:
        for machine in machines:
            # Before its first line a process that was started this moment knows no signals yet.
            while machine.process.poll() is None and os.path.getsize(machine.log.name) == 0:
                time.sleep(0.02)
            send(machine.process.pid, signal.SIGTERM)
    expected = 75 if is_stopped else 0
    deadline = time.time() + args.patience
    for machine in machines:
        try:
            code = machine.process.wait(max(1, deadline - time.time()))
        except subprocess.TimeoutExpired:
            print(f"soak: {machine.name} has not ended after {args.patience} s")
            machine.process.kill()
            return None
        if code != expected:
            print(f"soak: {machine.name} ended with {code}, expected {expected}: see {machine.log.name}")
            return None
    if not is_stopped and done < faults:
        print(f"soak: the run ended after {done} of {faults} faults: give it more --steps")
    return run, times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--faults", type=int, default=30)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between faults, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--nodes", type=int, default=2)
    parser.add_argument("--min-nodes", type=int)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--context", type=int, default=1, help="ranks of a machine that share each sequence")
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--etcd", action="store_true")
    parser.add_argument("--patience", type=float, default=600)
    parser.add_argument("--minutes", type=float, default=0)
    args = parser.parse_args()
    if args.etcd and args.namespaces:
        parser.error("--etcd listens on the loopback interface, which --namespaces cannot reach")
    args.min_nodes = args.min_nodes or args.nodes
    args.stops = args.minutes > 0 or not args.steps
    args.skein = os.path.abspath(args.skein)
    os.makedirs(args.folder, exist_ok=True)
    args.folder = tempfile.mkdtemp(prefix="soak-", dir=os.path.abspath(args.folder))
    code = soak(args)
    if code == 0:
        shutil.rmtree(args.folder)
    else:
        print(f"soak: what was left lies in {args.folder}")
    return code


def newest_checkpoint(run):
    """A folder with more in its name, such as .failed, holds what a save that was cut off had written."""
    names = os.listdir(os.path.join(run, "checkpoints"))
    return max(int(name[5:]) for name in names if re.fullmatch(r"step-\d+", name))


def last_step(run):
    """How far the newest generation came. What one before it had done, it may have had to do again."""
    begun = max((event["time"] for event in events(run, "generation")), default=0)
    return max((record["step"] for record in metrics(run) if record["time"] > begun), default=0)


def says_what_is_lost(folder):
    """A worker that had been struck when the signal came cannot save."""
    logs = [(pathlib.Path(folder) / name).read_text() for name in os.listdir(folder) if name.startswith("node-struck")]
    return any(words in log for log in logs
               for words in ("resumes from the newest checkpoint", "the run stops between two generations"))


def soak(args):
    data = make_data(args.skein, args.folder)
    etcd = Etcd(args.folder, args.etcd)
    network = Network(args.nodes, args.namespaces)
    try:
        if args.stops:
            args.steps = 200_000_000
        else:
            quiet = train(args, data, "quiet", "1", 0, Network(1, False), etcd)
        struck = train(args, data, "struck", f"{args.min_nodes}:{args.nodes}", args.faults, network,
                       etcd, args.minutes)
        if args.stops and struck:
            args.steps, args.patience = newest_checkpoint(struck[0]), max(args.patience, 60 * args.minutes)
            last = last_step(struck[0])
            if args.steps < last and not says_what_is_lost(args.folder):
                print(f"soak: it stopped after step {last} with step {args.steps} as the newest checkpoint, "
                      "and does not say why")
                return 1
            quiet = train(args, data, "quiet", "1", 0, Network(1, False), etcd)
    finally:
        network.remove()
        etcd.stop()
    if struck is None or quiet is None:
        return 1
    for kind, seconds in sorted(struck[1].items()):
        print(f"{kind:7} {len(seconds):3} times, to the next step: median "
              f"{statistics.median(seconds):.2f} s, most {max(seconds):.2f} s")
    print(f"generations by number of machines: {generations(struck[0])}")
    expected, found = losses(quiet[0]), losses(struck[0])
    wrong = [step for step in expected if expected[step] != found.get(step)]
    if wrong:
        print(f"soak: step {wrong[0]} has the loss {found.get(wrong[0])}, the quiet run "
              f"{expected[wrong[0]]}; {len(wrong)} steps differ")
        return 1
    if weights(args.skein, quiet[0], args.steps) != weights(args.skein, struck[0], args.steps):
        print("soak: the exported weights differ from those of the quiet run")
        return 1
    print(f"{len(expected)} losses and the exported weights are those of the quiet run")
    if "away" in struck[1] and not events(struck[0], "host_lost"):
        print("soak: a machine was away, and no event says that it was lost")
        return 1
    return tell_time(args.skein, struck[0])


def tell_time(skein, run):
    """Where the time of the struck run went, as the program's own report says it."""
    told = subprocess.run([skein, "report", run, "--json"], check=True, capture_output=True, text=True)
    report = json.loads(told.stdout)
    print(f"goodput {100 * report['goodput']:.2f}% of {report['time']['wall_seconds']:.1f} s")
    for part, seconds in report["time"]["parts"].items():
        print(f"  {part:12} {seconds:9.3f} s")
    micros = sum(round(1e6 * seconds) for seconds in report["time"]["parts"].values())
    if micros != round(1e6 * report["time"]["wall_seconds"]):
        print(f"soak: the parts of the time add up to {micros} us, not to the whole")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
