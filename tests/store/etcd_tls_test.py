#!/usr/bin/env python3
"""A run on two machines that meet in an etcd with TLS, certificates of clients, users, and tokens of one second.

  tests/store/etcd_tls_test.py SKEIN FOLDER [--steps 300]

Each supervisor on this machine stands for one (SKEIN_NODE). First come starts with mistakes: each must be named, end
with exit code 2, and make nothing. Then a worker of a good start is killed, so that its state comes from the copy in
the memory of the machines. The run must end with the losses of a quiet one that meets in a folder, and the password
must be in no file of the run and in no argument of a process.
"""
import argparse
import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "survival"))
import supervised  # noqa: E402
from supervised import services  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PASSWORD = "correct-horse-battery-staple"
VARIABLES = ["ETCDCTL_CACERT", "ETCDCTL_CERT", "ETCDCTL_KEY", "ETCDCTL_USER", "ETCDCTL_PASSWORD"]


class Etcd(supervised.Etcd):
    """With TLS, and users once `add_user` was called."""

    def __init__(self, folder, certificates):
        self.certificates = certificates
        super().__init__(folder, True)

    def start(self):
        own = os.path.join(self.certificates, "server")
        token = os.path.join(self.certificates, "token")
        self.command = [argument.replace("http://" + self.endpoint, "https://" + self.endpoint)
                        for argument in self.command]
        listens = self.command.index("--listen-client-urls") + 1  # also where its certificate does not say
        self.command[listens] = ",".join("https://" + self.endpoint.replace("127.0.0.1", host)
                                         for host in ("127.0.0.1", "127.0.0.2"))
        self.process = subprocess.Popen(
            [*self.command, "--cert-file", own + ".pem", "--key-file", own + ".key", "--client-cert-auth",
             "--trusted-ca-file", os.path.join(self.certificates, "ca.pem"), "--auth-token",
             f"jwt,pub-key={token}.pub,priv-key={token}.key,sign-method=RS256,ttl=1s"],
            stdout=self.log, stderr=self.log, env=services.environment())

    def address(self, name):
        return super().address(name).replace("etcd://", "etcds://")

    def call(self, path, **body):
        """One call of the HTTP gateway; its answer."""
        context = ssl.create_default_context(cafile=os.path.join(self.certificates, "ca.pem"))
        own = os.path.join(self.certificates, "client")
        context.load_cert_chain(own + ".pem", own + ".key")
        request = urllib.request.Request(f"https://{self.endpoint}/v3/{path}", json.dumps(body).encode())
        with urllib.request.urlopen(request, context=context, timeout=30) as answer:
            return json.load(answer)

    def wait(self):
        deadline = time.time() + 60
        while True:
            try:
                return self.call("kv/range", key="eA==")
            except OSError as error:
                if time.time() > deadline or self.process.poll() is not None:
                    sys.exit(f"etcd does not start: {error}; its log is {self.log.name}")
            time.sleep(0.05)

    def add_users(self, prefix):
        key = {"key": base64.b64encode(prefix.encode() + b"/").decode(),
               "range_end": base64.b64encode(prefix.encode() + b"0").decode()}
        self.call("auth/user/add", name="root", password="root's")
        self.call("auth/role/add", name="root")
        self.call("auth/user/grant", user="root", role="root")
        self.call("auth/user/add", name="skein", password=PASSWORD)
        self.call("auth/role/add", name="runs")
        self.call("auth/role/grant", name="runs", perm={"permType": "READWRITE", **key})
        self.call("auth/user/grant", user="skein", role="runs")
        self.call("auth/enable")


def config(folder, data, name, steps, nodes, rendezvous, access):
    run, path = os.path.join(folder, name), os.path.join(folder, name + ".toml")
    text = supervised.CONFIG.format(dir=run, steps=steps, data=data, workers=1 if nodes == "2" else 2, nodes=nodes,
                                    ranks=2, rendezvous=rendezvous, sequences=8)
    lines = "".join(f'{key} = "{value}"\n' for key, value in access.items())
    with open(path, "w") as out:
        out.write(text.replace("[device]\n", lines + "[device]\n"))
    return run, path


def mistakes(skein, folder, data, etcd, good, certificates):
    """Starts that must be refused: what is wrong, and words of what is said."""
    wrong = os.path.join(folder, "other-password")
    with open(os.open(wrong, os.O_WRONLY | os.O_CREAT, 0o600), "w") as out:
        out.write("not-the-password")
    other = os.path.join(certificates, "other.pem")
    lapsed = os.path.join(certificates, "lapsed")
    address = etcd.address("run")
    for name, place, access, words in [
            ("authority", address, {"etcd_ca_file": other}, ["not signed by an authority of " + other]),
            ("lapsed", address, {"etcd_cert_file": lapsed + ".pem", "etcd_key_file": lapsed + ".key"}, ["has expired"]),
            ("name", address.replace("127.0.0.1", "127.0.0.2"), {}, ["of another name"]),
            ("password", address, {"etcd_password_file": wrong}, ['no user "skein" with this password']),
            ("prefix", address.replace("/soak/", "/other/"), {}, ["may not read and write", "grant-permission"]),
            ("plain", address.replace("etcds://", "etcd://"),
             {key: "" for key in good if not key.endswith(("user", "password_file"))}, ["etcds://"]),
            ("colon", address, {"etcd_user": "skein:" + PASSWORD}, ["launch.etcd_password_file"])]:
        run, path = config(folder, data, "wrong-" + name, 10, "2", place, {**good, **access})
        result = subprocess.run([skein, "train", path], capture_output=True, text=True, timeout=300,
                                env=dict(os.environ, SKEIN_NODE="w"))
        missing = [word for word in words if word not in result.stderr]
        if result.returncode != 2 or missing or os.path.exists(run) or PASSWORD in result.stderr:
            sys.exit(f"etcd_tls: a start with the wrong {name} ended with {result.returncode}, expected 2; {missing} "
                     f"is not said, or {run} was made: {result.stderr}")
        print(f"wrong {name}: refused")


def command_lines(pids):
    for pid in pids:
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                yield file.read().replace(b"\0", b" ").decode(errors="replace")
        except FileNotFoundError:
            pass


def files_with(folder, text):
    found = []
    for place, _, names in os.walk(folder):
        for name in names:
            with open(os.path.join(place, name), "rb") as file:
                if text.encode() in file.read():
                    found.append(os.path.join(place, name))
    return found


def train(skein, folder, data, etcd, good, steps):
    run, path = config(folder, data, "run", steps, "2", etcd.address("run"), good)
    network = supervised.Network(2, False)
    machines = [supervised.Node(skein, path, f"m{i}", folder, network, i) for i in range(2)]
    try:
        seen, killed = [], False
        deadline = time.time() + 900
        while any(machine.process.poll() is None for machine in machines):
            if time.time() > deadline:
                sys.exit(f"etcd_tls: the run did not end within 900 s: {run}")
            seen += command_lines([pid for machine in machines for pid in [machine.process.pid, *machine.workers()]])
            if not killed and supervised.newest_step(run)[1] > steps // 2:
                killed = bool(machines[1].workers()) and supervised.send(machines[1].workers()[0], signal.SIGKILL)
            time.sleep(0.1)
    finally:
        for machine in machines:
            machine.process.kill()
            machine.process.wait()
    codes = [machine.process.returncode for machine in machines]
    logs = "".join(open(machine.log.name).read() for machine in machines)
    if codes != [0, 0]:
        sys.exit(f"etcd_tls: the machines ended with {codes}: {logs}")
    if any(PASSWORD in line for line in seen) or files_with(run, PASSWORD):
        sys.exit(f"etcd_tls: the password is in an argument or in {files_with(run, PASSWORD)}")
    if "no copy of the state reaches" in logs or not killed:
        sys.exit(f"etcd_tls: no copies were passed on, or no worker was killed: {logs}")
    return run, logs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("skein")
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=300)
    args = parser.parse_args()
    if services.program("etcd") is None:
        print("etcd_tls: there is no etcd: scripts/test_tools.sh unpacks it")
        sys.exit(77)
    for name in VARIABLES:
        os.environ.pop(name, None)
    skein, folder, data = supervised.work_folder(args, "etcd-tls")
    certificates = os.path.join(folder, "certificates")
    subprocess.run([os.path.join(HERE, "make_certificates.sh"), certificates], check=True)
    password = os.path.join(folder, "password")
    with open(os.open(password, os.O_WRONLY | os.O_CREAT, 0o600), "w") as out:
        out.write(PASSWORD + "\n")
    good = {"etcd_ca_file": os.path.join(certificates, "ca.pem"),
            "etcd_cert_file": os.path.join(certificates, "client.pem"),
            "etcd_key_file": os.path.join(certificates, "client.key"),
            "etcd_user": "skein", "etcd_password_file": password}
    etcd = Etcd(folder, certificates)
    try:
        etcd.wait()
        etcd.add_users("soak/run")
        mistakes(skein, folder, data, etcd, good, certificates)
        run, logs = train(skein, folder, data, etcd, good, args.steps)
    finally:
        etcd.stop()
    quiet, path = config(folder, data, "quiet", args.steps, "1", "", {})
    subprocess.run([skein, "train", path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if supervised.losses(run) != supervised.losses(quiet):
        sys.exit(f"etcd_tls: {run} and {quiet} have other losses")
    starts = [event.get("from") or event.get("checkpoint") for event in supervised.events(run, "start")]
    print(f"{args.steps} steps on two machines with tokens of one second, the losses of a quiet run; starts: {starts}")


if __name__ == "__main__":
    main()
