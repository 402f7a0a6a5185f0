#!/usr/bin/env python3
"""How fast text becomes one Arrow file: `skein data ingest` beside Hugging Face datasets.

    bench/ingest.py FOLDER [--rounds 3] [--skein "build/skein data ingest --overwrite --out"]

FOLDER holds .jsonl.zst files, such as bench/ingest_text.py makes. The rival is
load_dataset("json") with a process a core and an empty cache, and then one Arrow file written of its
column `text` with pyarrow. Both end when their output is on the disk (fsync; the rival's cache need not
be). What neither can be faster than is measured beside them: `disk` writes a file of that size and
fsyncs it, `zstd` decompresses the inputs, a process a core, and does nothing with them. All alternate,
beside FOLDER; in memory (/dev/shm) there is no disk to wait for. Medians of rounds: seconds, MB/s of
text, and the greatest resident memory (of one process) and of all together (`sum`).
"""
import argparse
import glob
import os
import shlex
import shutil
import statistics
import sys
import tempfile
import threading
import time

RIVAL = """
import os, sys
folder, out, cache = sys.argv[1:4]
os.environ["HF_HOME"], os.environ["HF_HUB_OFFLINE"] = cache, "1"
import glob, pyarrow as pa, datasets
datasets.disable_progress_bars()
files = sorted(glob.glob(folder + "/*.jsonl.zst"))
data = datasets.load_dataset("json", data_files=files, split="train", cache_dir=cache,
                             num_proc=min(len(files), os.cpu_count()))
table = data.data.table.select(["text"])
schema = pa.schema([("text", pa.large_string())])
with pa.OSFile(out, "wb") as sink, pa.ipc.new_stream(sink, schema) as writer:
    for batch in table.to_batches():
        writer.write_batch(batch.cast(schema))
os.fsync(os.open(out, os.O_RDONLY))
"""

DISK = """
import os, sys
block, left = os.urandom(8 << 20), int(sys.argv[2])
with open(sys.argv[1], "wb", buffering=0) as file:
    while left > 0:
        left -= file.write(block[:left])
    os.fsync(file.fileno())
"""


def resident_mb(root):
    """Resident memory of a process and its descendants: the greatest, the sum."""
    parents = {}
    for status in glob.glob("/proc/[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in open(status).read().splitlines() if ":\t" in line)
            parents[int(fields["Pid"])] = (int(fields["PPid"]), int(fields.get("VmRSS", "0").split()[0]) / 1e3)
        except (OSError, ValueError, KeyError):
            continue
    sizes = []
    for pid in parents:
        at = pid
        while at in parents and at != root:
            at = parents[at][0]
        if at == root:
            sizes.append(parents[pid][1])
    return (max(sizes), sum(sizes)) if sizes else (0, 0)


def measure(command):
    begin = time.perf_counter()
    pid = os.posix_spawnp(command[0], command, os.environ)
    peaks, ended = [0, 0], threading.Event()

    def watch():
        while not ended.wait(0.2):
            peaks[:] = [max(pair) for pair in zip(peaks, resident_mb(pid))]

    watcher = threading.Thread(target=watch)
    watcher.start()
    _, status, usage = os.wait4(pid, 0)
    seconds = time.perf_counter() - begin
    ended.set()
    watcher.join()
    if status != 0:
        sys.exit(f"{command[0]}: failed")
    cpu = usage.ru_utime + usage.ru_stime
    return seconds, cpu, max(peaks[0], usage.ru_maxrss / 1e3), peaks[1]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--skein", default="build/skein data ingest --overwrite --out")
    options = parser.parse_args()
    results, text_bytes = {}, 0
    for _ in range(options.rounds):
        for name in ("skein", "datasets", "disk", "zstd"):
            with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(options.folder))) as work:
                out, cache = f"{work}/out.arrow", f"{work}/cache"
                command = {
                    "skein": shlex.split(options.skein) + [out, options.folder],
                    "datasets": [sys.executable, "-c", RIVAL, options.folder, out, cache],
                    "disk": [sys.executable, "-c", DISK, out, str(text_bytes)],
                    "zstd": ["sh", "-c", 'ls "$0"/*.zst | xargs -P "$(nproc)" -n 1 zstd -dcq > /dev/null',
                             options.folder],
                }[name]
                results.setdefault(name, []).append(measure(command))
                if name == "skein":
                    text_bytes = os.path.getsize(out)
                shutil.rmtree(cache, ignore_errors=True)
    print(f"{'':10} {'seconds':>8} {'cpu s':>7} {'MB/s':>7} {'RSS MB':>7} {'sum MB':>7}")
    medians = {}
    for name, rounds in results.items():
        seconds, cpu, largest, total = (statistics.median(r[i] for r in rounds) for i in range(4))
        medians[name] = seconds
        speed = text_bytes / 1e6 / seconds
        print(f"{name:10} {seconds:8.2f} {cpu:7.1f} {speed:7.1f} {largest:7.0f} {total:7.0f}")
    print(f"ratio {medians['datasets'] / medians['skein']:.2f}; the rival's time to the slower of disk and zstd "
          f"{medians['datasets'] / max(medians['disk'], medians['zstd']):.2f}")


if __name__ == "__main__":
    main()
