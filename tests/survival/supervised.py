"""Machines that train on this one: each a supervisor with a name of its own (SKEIN_NODE),
in a network of its own if that is wanted; the text that they train on, and what their runs have written."""
import errno
import hashlib
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import services  # noqa: E402

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


def work_folder(args, name):
    """The program, a folder of its own in args.folder, and text to train on there."""
    skein = os.path.abspath(args.skein)
    os.makedirs(args.folder, exist_ok=True)
    folder = tempfile.mkdtemp(prefix=name + "-", dir=os.path.abspath(args.folder))
    return skein, folder, make_data(skein, folder)


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
        self.command = [services.program("etcd"), "--data-dir", os.path.join(folder, "etcd"),
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
        faults = {"LD_PRELOAD": os.path.join(os.path.dirname(self.command[-3]), "libskein_system_faults.so"),
                  "SKEIN_FSYNC": str(errno.EIO)} if sick else {}
        self.starts += 1  # a log each: a long one would be past the limit
        self.log = open(os.path.join(self.folder, f"node-{self.name}-{self.starts}.log"), "a")
        self.process = subprocess.Popen(self.command, stdout=self.log, stderr=self.log,
                                        env=dict(os.environ, SKEIN_NODE=self.name, **faults, **self.interface()))

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


def records(run, file):
    """The objects of a file of lines, without those that are torn."""
    found = []
    try:
        with open(os.path.join(run, file), "rb") as lines:
            for line in lines:
                try:
                    record = json.loads(line)
                except ValueError:
                    continue
                if isinstance(record, dict):
                    found.append(record)
    except FileNotFoundError:
        pass
    return found


def metrics(run):
    """The steps in the order in which they were done; those that were done again are there twice."""
    return [record for record in records(run, "metrics.jsonl") if "loss" in record]


def losses(run):
    return {record["step"]: record["loss"] for record in metrics(run)}


def events(run, name):
    return [record for record in records(run, "events.jsonl") if record.get("event") == name]


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
