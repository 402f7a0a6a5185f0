#!/usr/bin/env python3
"""Trains on several supervisors on this machine while faults happen, and compares with a quiet run.

  soak.py SKEIN FOLDER [--faults 30] [--every 2.0] [--seed 1] [--nodes 2] [--workers 2] [--steps 400]
          [--min-nodes 2] [--namespaces] [--etcd] [--minutes M]

Each supervisor stands for a machine (SKEIN_NODE). With --namespaces, which needs root and `ip`, each has
a network of its own behind a bridge. With --etcd they meet in an etcd, which is started on the loopback
interface, instead of a folder. Faults, at random times, by seed:
  kill    SIGKILL to a worker           hang       SIGSTOP to a worker, for good
  pause   SIGSTOP to a worker, 1 s      host       SIGKILL to a supervisor, which is started again
  freeze  SIGSTOP to a supervisor, 3 s
  away    with --min-nodes: SIGKILL to a supervisor, which is started again 15 s later; the others go on
  sick    the same, but it is started at once and cannot write files of 1 MiB: its check fails, and it is
          left out until it is started again 15 s later
  link    with --namespaces: its link is down, 2 to 12 s
  store   with --etcd: SIGKILL to etcd, which is started again 3 s later
Afterwards every supervisor must end with 0, every step must have the loss that the quiet run had, and
the exported weights must be the same file. With --minutes there are faults for so long, whatever their
number; then the run is asked to stop, and a quiet one does as many steps. Prints a line a fault and a table of recovery times.
"""
import argparse
import collections
import hashlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONFIG = """
[run]
dir = "{dir}"
steps = {steps}
[model]
hidden_size = 64
intermediate_size = 128
num_hidden_layers = 2
num_attention_heads = 4
num_key_value_heads = 2
max_position_embeddings = 128
[data]
train = "{data}/corpus.arrow"
tokenizer = "{data}/tokenizer"
sequence_length = 64
[batch]
global_sequences = {sequences}
[optimizer]
learning_rate = 1e-3
warmup_steps = 4
decay_steps = 1000
[parallel]
reduction_width = {ranks}
[checkpoint]
every_steps = 20
keep = 3
[launch]
workers = {workers}
nodes = "{nodes}"
collective_timeout_s = 8
hang_timeout_s = 4
max_restarts = 1000
rendezvous = "{rendezvous}"
[device]
threads = 1
[log]
every_steps = 1
tensorboard = false
"""


def make_data(skein, folder):
    data = os.path.join(folder, "data")
    os.makedirs(data, exist_ok=True)
    source = os.path.join(data, "texts.jsonl")
    with open(source, "w") as out:
        chance = random.Random(0)
        words = ["".join(chance.choices("abcdefghij", k=chance.randint(2, 7))) for _ in range(400)]
        for _ in range(600):
            out.write(json.dumps({"text": " ".join(chance.choices(words, k=200))}) + "\n")
    corpus = os.path.join(data, "corpus.arrow")
    for command in (["data", "ingest", "--overwrite", "--out", corpus, source],
                    ["data", "tokenizer", "--overwrite", "--vocab-size", "300", "--out",
                     os.path.join(data, "tokenizer"), corpus]):
        subprocess.run([skein, *command], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
    return data


class Network:
    """A namespace for each machine, all on one bridge; without them, the machine's own network."""

    def __init__(self, count, wanted):
        self.names = [f"skein-soak-{os.getpid()}-{i}" for i in range(count)] if wanted else []
        self.bridge = f"sk{os.getpid()}"
        if not self.names:
            return
        self.ip("link", "add", self.bridge, "type", "bridge")
        self.ip("link", "set", self.bridge, "up")
        for i, name in enumerate(self.names):
            self.ip("netns", "add", name)
            self.ip("link", "add", self.link(i), "type", "veth", "peer", "name", "eth0", "netns", name)
            self.ip("link", "set", self.link(i), "master", self.bridge, "up")
            for command in (["addr", "add", f"10.199.7.{i + 1}/24", "dev", "eth0"],
                            ["link", "set", "eth0", "up"], ["link", "set", "lo", "up"]):
                self.ip("-n", name, *command)

    def link(self, index):
        return f"{self.bridge}v{index}"

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    def inside(self, index, command):
        return ["ip", "netns", "exec", self.names[index], *command] if self.names else command

    def cut(self, index, seconds):
        self.ip("link", "set", self.link(index), "down")
        time.sleep(seconds)
        self.ip("link", "set", self.link(index), "up")

    def remove(self):
        for name in self.names:
            self.ip("netns", "del", name)
        if self.names:
            self.ip("link", "del", self.bridge)


class Etcd:
    """A server on free ports of the loopback interface, or none."""

    def __init__(self, folder, wanted):
        self.process = None
        if not wanted:
            return
        self.endpoint, peer = (f"127.0.0.1:{port}" for port in self.free_ports())
        self.log = open(os.path.join(folder, "etcd.log"), "a")
        self.command = ["etcd", "--data-dir", os.path.join(folder, "etcd"),
                        "--listen-client-urls", "http://" + self.endpoint,
                        "--advertise-client-urls", "http://" + self.endpoint,
                        "--listen-peer-urls", "http://" + peer,
                        "--initial-advertise-peer-urls", "http://" + peer,
                        "--initial-cluster", "default=http://" + peer]
        self.start()

    @staticmethod
    def free_ports():
        with socket.socket() as first, socket.socket() as second:
            for one in (first, second):
                one.bind(("127.0.0.1", 0))
            return first.getsockname()[1], second.getsockname()[1]

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log)

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()

    def address(self, name):
        return f"etcd://{self.endpoint}/soak/{name}" if self.process else ""


class Node:
    def __init__(self, skein, config, name, folder, network, index):
        self.command = network.inside(index, [skein, "train", config])
        self.network, self.index = network, index
        self.name = name
        self.folder, self.starts = folder, 0
        self.process = None
        self.start()

    def start(self, sick=False):
        def limit():
            if sick:
                most = (1 << 20) - 1
                resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
        self.starts += 1  # a log each: a long one would be past the limit
        self.log = open(os.path.join(self.folder, f"node-{self.name}-{self.starts}.log"), "a")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log, preexec_fn=limit,
                                        env=dict(os.environ, SKEIN_NODE=self.name, **self.interface()))

    def interface(self):
        return {"SKEIN_NETWORK_INTERFACE": "eth0"} if self.network.names else {}

    def workers(self):
        try:
            with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
                return [int(pid) for pid in children.read().split()]
        except FileNotFoundError:
            return []


def send(pid, number):
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def metrics(run):
    """The lines of all steps; those that were done again are there twice."""
    try:
        with open(os.path.join(run, "metrics.jsonl")) as lines:
            return [json.loads(line) for line in lines if line.endswith("\n")]
    except FileNotFoundError:
        return []


def losses(run):
    return {line["step"]: line["loss"] for line in metrics(run) if "loss" in line}


def events(run, name):
    with open(os.path.join(run, "events.jsonl")) as lines:
        return [event for event in map(json.loads, lines) if event["event"] == name]


def generations(run):
    """How many generations trained with each number of machines."""
    sizes = collections.Counter(len(event["hosts"]) for event in events(run, "generation"))
    return ", ".join(f"{sizes[size]} of {size}" for size in sorted(sizes))


def newest_step(run):
    try:
        with open(os.path.join(run, "metrics.jsonl"), "rb") as file:
            file.seek(max(0, os.path.getsize(file.name) - 4096))
            lines = [line for line in file.read().split(b"\n") if line.startswith(b"{")]
            return os.path.getsize(file.name), json.loads(lines[-1]).get("step", 0) if lines else 0
    except (FileNotFoundError, ValueError):
        return 0, 0


def weights(skein, run, steps):
    out = os.path.join(run, "exported")
    checkpoint = os.path.join(run, "checkpoints", f"step-{steps:08}")
    subprocess.run([skein, "checkpoint", "export", checkpoint, "--out", out], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    digest = hashlib.sha256()
    for name in sorted(os.listdir(out)):
        if name.endswith(".safetensors"):
            with open(os.path.join(out, name), "rb") as file:
                digest.update(file.read())
    return digest.hexdigest()


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
    with open(config, "w") as out:
        out.write(CONFIG.format(dir=run, steps=args.steps, data=data, workers=args.workers,
                                nodes=nodes, ranks=args.nodes * args.workers,
                                rendezvous=etcd.address(name),
                                sequences=2 * args.nodes * args.workers))
    chance = random.Random(args.seed)
    count = args.nodes if nodes != "1" else 1
    machines = [Node(args.skein, config, f"{name}{i}", args.folder, network, i) for i in range(count)]
    times = {}
    wait_for_step(run, time.time() + 60)
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
        wait_for_step(run, time.time() + 60)
        took = time.time() - before
        times.setdefault(kind, []).append(took)
        print(f"{done:3} {kind:7} {struck:28} next step after {took:5.2f} s, "
              f"step {newest_step(run)[1]}", flush=True)
    if minutes:
        for machine in machines:
            send(machine.process.pid, signal.SIGTERM)
    expected = 75 if minutes else 0
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
    if not minutes and faults and done < faults:
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
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--namespaces", action="store_true")
    parser.add_argument("--etcd", action="store_true")
    parser.add_argument("--patience", type=float, default=120)
    parser.add_argument("--minutes", type=float, default=0)
    args = parser.parse_args()
    if args.etcd and args.namespaces:
        parser.error("--etcd listens on the loopback interface, which --namespaces cannot reach")
    args.min_nodes = args.min_nodes or args.nodes
    args.skein = os.path.abspath(args.skein)
    os.makedirs(args.folder, exist_ok=True)
    args.folder = tempfile.mkdtemp(prefix="soak-", dir=os.path.abspath(args.folder))
    code = soak(args)
    if code == 0:
        shutil.rmtree(args.folder)
    else:
        print(f"soak: what was left lies in {args.folder}")
    return code


def soak(args):
    data = make_data(args.skein, args.folder)
    etcd = Etcd(args.folder, args.etcd)
    network = Network(args.nodes, args.namespaces)
    try:
        if args.minutes:
            args.steps = 200_000_000
        else:
            quiet = train(args, data, "quiet", "1", 0, Network(1, False), etcd)
        struck = train(args, data, "struck", f"{args.min_nodes}:{args.nodes}", args.faults, network,
                       etcd, args.minutes)
        if args.minutes and struck:
            args.steps, args.patience = max(losses(struck[0])), 60 * args.minutes
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
