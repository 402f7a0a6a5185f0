"""A Slurm cluster on this machine: the real daemons of Debian's packages, several slurmd, munge, where
scripts/test_tools.sh unpacked them (tests/services.py).

  with Cluster(folder, nodes=4) as cluster:
      cluster.run("sinfo")

Everything lies in `folder`: slurm.conf, the key and socket of munged, spool folders and logs. The daemons
listen on free ports of the loopback interface, run as the user that starts them, and are children of this
process; leaving the block ends them, and what their jobs left, by process id.
"""
import os
import re
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import services  # noqa: E402

PROGRAMS = ["munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel"]

# Short times: a lost node is noticed within seconds (3 are too few where other tests take the cores), and a
# requeued job starts again at once.
CONF = """
ClusterName=skein
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
{plugins}MailProg=/bin/true
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=1,sched_interval=1,batch_sched_delay=0,sched_min_interval=0
SlurmdTimeout=10
MessageTimeout=3
SlurmctldTimeout=30
KillWait=10
MinJobAge=3600
MaxArraySize=2000
ReturnToService=2
{nodes}
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing_programs():
    return [name for name in PROGRAMS if services.program(name) is None]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def environment_of(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return []


def processes():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def command_of(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")
    except OSError:
        return [b""]


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def wait_until(holds, what, seconds=600):
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds} s")
        time.sleep(0.05)


class Cluster:
    def __init__(self, folder, nodes=2, cpus=8):
        self.folder = os.path.abspath(folder)
        self.names = [f"node{i + 1}" for i in range(nodes)]
        self.environment = {name: value for name, value in services.environment().items()
                            if not name.startswith(("SLURM", "SBATCH", "SKEIN_"))}
        self.environment.update(SLURM_CONF=os.path.join(self.folder, "slurm.conf"))
        self.plugins, self.of_slurmd = services.slurm_places()
        self.daemons = {}  # name to process
        self.write_conf(cpus)

    def write_conf(self, cpus):
        os.makedirs(os.path.join(self.folder, "state"))
        ports = free_ports(len(self.names) + 1)
        host = socket.gethostname()
        nodes = "\n".join(f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs={cpus}"
                          for name, port in zip(self.names, ports))
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        for name in self.names:
            os.makedirs(os.path.join(self.folder, f"spool-{name}"))
        with open(os.path.join(self.folder, "slurm.conf"), "w") as conf:
            conf.write(CONF.format(host=host, controller_port=ports[-1], user=user, folder=self.folder,
                                   nodes=nodes, plugins=self.plugins))
        with open(os.open(os.path.join(self.folder, "munge.key"), os.O_WRONLY | os.O_CREAT, 0o600),
                  "wb") as key:
            key.write(os.urandom(128))

    def start_daemon(self, name, *command):
        log = open(os.path.join(self.folder, f"{name}.out"), "a")
        self.daemons[name] = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                              env=self.environment)

    def start_node(self, name):
        self.start_daemon(name, "slurmd", "-D", "-N", name, *self.of_slurmd)

    def __enter__(self):
        try:
            at = lambda name: os.path.join(self.folder, name)
            self.start_daemon("munged", "munged", "--foreground", "--force", "--key-file", at("munge.key"),
                              "--socket", at("munge.socket"), "--pid-file", at("munged.pid"),
                              "--log-file", at("munged.log"), "--seed-file", at("munged.seed"))
            wait_until(lambda: os.path.exists(at("munge.socket")), "munged listens")
            self.start_daemon("slurmctld", "slurmctld", "-D", "-i")
            for name in self.names:
                self.start_node(name)
            self.wait_for_nodes()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def wait_for_nodes(self, names=None):
        for name in names or self.names:
            wait_until(lambda: self.node_state(name).startswith(("IDLE", "MIXED", "ALLOCATED")) and
                       "*" not in self.node_state(name), f"{name} is up", 60)

    def stop(self):
        """Ends the daemons, and every process of theirs: each has this cluster's SLURM_CONF."""
        if "slurmctld" in self.daemons and self.daemons["slurmctld"].poll() is None:
            self.run("scancel", "--signal=KILL", "--full", "--me", check=False)
        for process in reversed(self.daemons.values()):
            if process.poll() is None:
                process.terminate()
        for process in self.daemons.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pid in self.left_behind():
            kill(pid)

    def left_behind(self):
        mark = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
        return [pid for pid in processes() if pid != os.getpid() and mark in environment_of(pid)]

    def run(self, *command, check=True, **options):
        done = subprocess.run(command, env=dict(self.environment, **options.pop("env", {})),
                              capture_output=True, text=True, **options)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr.strip()}")
        return done

    def node_state(self, name):
        found = self.run("scontrol", "--oneliner", "show", "node", name, check=False)
        state = re.search(r" State=(\S+)", found.stdout)
        return state.group(1) if state else "UNKNOWN"

    def job(self, job):
        """The fields that scontrol shows, of the job or of each task of an array."""
        text = self.run("scontrol", "--oneliner", "show", "job", str(job)).stdout
        return [dict(field.split("=", 1) for field in line.split() if "=" in field)
                for line in text.splitlines() if line.strip()]

    def wait_for_state(self, job, states, seconds=60):
        wait_until(lambda: all(task["JobState"] in states for task in self.job(job)),
                   f"job {job} is {' or '.join(states)}", seconds)
        return self.job(job)

    def tasks_of(self, name):
        """The processes of jobs on a node."""
        mark = f"SLURMD_NODENAME={name}".encode()
        return [pid for pid in self.left_behind() if mark in environment_of(pid)]

    def lose_node(self, name):
        """As where a machine loses its power: nobody is left to report how its tasks ended."""
        daemon = self.daemons[name]
        tasks = self.tasks_of(name)
        stewards = {parent_of(pid) for pid in tasks}
        daemon.kill()
        for pid in stewards:
            if command_of(pid)[0].startswith(b"slurmstepd"):
                kill(pid)
        for pid in tasks:
            kill(pid)
        daemon.wait()
