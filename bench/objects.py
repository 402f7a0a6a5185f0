#!/usr/bin/env python3
"""What it costs that a corpus lies in a store, beside the same corpus on the disk.

    bench/objects.py SKEIN TOKENIZER CORPUS FOLDER [--delay-ms N] [--rounds N] [--lanes N] [--terabytes N]

The store is a loopback server that reads files of FOLDER and waits N milliseconds before each answer,
as one in the same region does. CORPUS is an .arrow file, or a folder of them. Prints medians of rounds
that alternate between disk and store:

    first batch    `skein data sample --step 1`, less the time of `skein version`
    of 10 TB       the same, of a sparse object that looks like a corpus of so many terabytes
    tokens/s       packed by one thread between the steps 1 and 41 of `data sample`, rows of 4,096 tokens
"""
import argparse
import email.utils
import http.server
import os
import pathlib
import statistics
import subprocess
import threading
import time
import urllib.parse
import xml.sax.saxutils

import first_batch

KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_EC2_METADATA_DISABLED": "true"}
ROW_TOKENS, STEPS = 4096, 41


class Store:
    """The files under `folder`, in the bucket `texts`: listed, asked for, and read in ranges."""

    def __init__(self, folder, delay_s):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def answer(self, status, body=b"", headers=()):
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **dict(headers)}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(body)

            def list(self, prefix):
                names = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
                rows = "".join(
                    f"<Contents><Key>{xml.sax.saxutils.escape(name)}</Key><Size>{(folder / name).stat().st_size}</Size>"
                    "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                    for name in names if name.startswith(prefix))
                text = f"<ListBucketResult><Name>texts</Name><IsTruncated>false</IsTruncated>{rows}</ListBucketResult>"
                self.answer(200, text.encode(), {"Content-Type": "application/xml"})

            def do_GET(self):
                time.sleep(delay_s)
                url = urllib.parse.urlsplit(self.path)
                key = urllib.parse.unquote(url.path).removeprefix("/texts").strip("/")
                query = urllib.parse.parse_qs(url.query)
                if not key or "list-type" in query:
                    return self.list(query.get("prefix", [""])[0])
                path = folder / key
                if not path.is_file():
                    return self.answer(404)
                state = path.stat()
                headers = {"ETag": f'"{state.st_mtime_ns}"', "Content-Type": "application/octet-stream",
                           "Last-Modified": email.utils.formatdate(state.st_mtime, usegmt=True)}
                if self.command == "HEAD":
                    return self.answer(200, headers={**headers, "Content-Length": str(state.st_size)})
                first, last = self.headers["Range"].removeprefix("bytes=").split("-")
                begin, end = int(first), min(int(last), state.st_size - 1)
                with path.open("rb") as file:
                    body = os.pread(file.fileno(), end - begin + 1, begin)
                headers["Content-Range"] = f"bytes {begin}-{end}/{state.st_size}"
                return self.answer(206, body, headers)

            do_HEAD = do_GET

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.environment = {**os.environ, **KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}"}


def seconds(command, environment=None):
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.monotonic() - begin


def write_config(path, corpus, tokenizer, lanes):
    path.write_text(f"""
[model]
hidden_size = 64
intermediate_size = 128
num_hidden_layers = 1
num_attention_heads = 2
[data]
train = "{corpus}"
tokenizer = "{tokenizer}"
sequence_length = {ROW_TOKENS}
[batch]
global_sequences = {lanes}
""")
    return str(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("skein", "tokenizer", "corpus", "folder"):
        parser.add_argument(name, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--delay-ms", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--lanes", type=int, default=8)
    parser.add_argument("--terabytes", type=float, default=10)
    options = parser.parse_args()
    objects = options.folder / "objects"
    objects.mkdir(parents=True, exist_ok=True)
    (objects / "corpus").mkdir(exist_ok=True)
    files = sorted(options.corpus.glob("*.arrow")) if options.corpus.is_dir() else [options.corpus]
    for file in files:
        link = objects / "corpus" / file.name
        link.exists() or link.symlink_to(file)
    sparse = objects / "sparse.arrow"
    if not sparse.exists():
        first_batch.write_sparse(sparse, int(options.terabytes * 1e12))
    store = Store(objects, options.delay_ms / 1000)
    places = {
        "disk": (str(objects), None),
        "store": ("s3://texts", store.environment),
    }
    found = {(what, place): [] for what in ("first", "sparse", "rate") for place in places}
    for _ in range(options.rounds):
        start = seconds([options.skein, "version"])
        for place, (root, environment) in places.items():
            sample = [options.skein, "data", "sample", "--json"]
            config = write_config(options.folder / f"{place}.toml", f"{root}/corpus", options.tokenizer, options.lanes)
            first = seconds([*sample, "--step", "1", config], environment)
            last = seconds([*sample, "--step", str(STEPS), config], environment)
            found["first", place].append(first - start)
            found["rate", place].append(options.lanes * ROW_TOKENS * (STEPS - 1) / (last - first))
            config = write_config(options.folder / f"{place}_sparse.toml", f"{root}/sparse.arrow", options.tokenizer,
                                  options.lanes)
            found["sparse", place].append(seconds([*sample, "--step", "1", config], environment) - start)
    median = {key: statistics.median(values) for key, values in found.items()}
    print(f"store: {options.delay_ms:g} ms an answer; {options.lanes} lanes; medians of {options.rounds} rounds")
    print(f"{'':24}{'disk':>12}{'store':>12}{'store/disk':>12}")
    rows = (("first", "first batch, s", 1), ("sparse", f"of {options.terabytes:g} TB, s", 1), ("rate", "tokens/s, millions", 1e6))
    for key, name, unit in rows:
        disk, there = median[key, "disk"] / unit, median[key, "store"] / unit
        print(f"{name:24}{disk:12.3f}{there:12.3f}{there / disk:12.2f}")


main()
