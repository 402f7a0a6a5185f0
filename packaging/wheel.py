#!/usr/bin/env python3
"""A Python wheel of a tree of packaging/stage.sh; prints its path.

    packaging/wheel.py STAGE VERSION OUT_DIR

`pip install` puts the tree into the environment as it is: bin/skein, libexec/skein, lib/skein, share.
No Python runs when the program does. The launcher and glibc are in it, so it is tagged with the oldest
glibc that was tried beside it, not with the one that the program was linked with.
"""
import base64
import csv
import hashlib
import io
import platform
import sys
import zipfile
from pathlib import Path

NAME = "skein_llm"
OLDEST_GLIBC = "2_28"
METADATA = """Metadata-Version: 2.1
Name: skein-llm
Version: {version}
Summary: Pre-trains language models, from raw text to a Hugging Face checkpoint, as one program
License: Apache-2.0
Classifier: Operating System :: POSIX :: Linux
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Requires-Python: >=3.7
Description-Content-Type: text/markdown

{description}
"""
DESCRIPTION = """The command `skein`, with every library that it needs. It is one C++ program: Python only installs it.

    pip install skein-llm
    skein --help

Documents: `share/doc/skein/docs` in the environment.
"""
WHEEL = """Wheel-Version: 1.0
Generator: skein packaging/wheel.py
Root-Is-Purelib: false
Tag: {tag}
"""


def main():
    stage, version, out = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    tag = f"py3-none-manylinux_{OLDEST_GLIBC}_{platform.machine()}"
    info, data = f"{NAME}-{version}.dist-info", f"{NAME}-{version}.data"
    path = out / f"{NAME}-{version}-{tag}.whl"
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")

    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        def add(name, content, mode):
            entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100000 | mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, content)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            rows.writerow([name, f"sha256={digest}", len(content)])

        for file in sorted(stage.rglob("*")):
            inside = file.relative_to(stage)
            if not file.is_file() or inside == Path("REQUIRES"):
                continue
            kind = "scripts" if inside.parts[0] == "bin" else "data"
            name = inside.name if kind == "scripts" else inside
            mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
            add(f"{data}/{kind}/{name}", file.read_bytes(), mode)
        metadata = METADATA.format(version=version, description=DESCRIPTION)
        add(f"{info}/METADATA", metadata.encode(), 0o644)
        add(f"{info}/WHEEL", WHEEL.format(tag=tag).encode(), 0o644)
        rows.writerow([f"{info}/RECORD", "", ""])
        wheel.writestr(f"{info}/RECORD", record.getvalue())
    print(path)


main()
