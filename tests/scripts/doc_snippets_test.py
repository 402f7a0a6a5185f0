#!/usr/bin/env python3
"""The C++ of the pages on extending Skein compiles: every ```cpp block that is a file of its example.

  tests/scripts/doc_snippets_test.py [--write FOLDER]

  --write FOLDER   only writes the files, laid out as in the repository, and compiles nothing

A block is the file that the heading above it names in backquotes; of a heading with several names they
take their blocks in turn, and `.cc` alone stands for the name before with that ending. Names without
a folder lie in the page's (PAGES). A block that is deliberately a part of a file has the comment
<!-- fragment --> on the line before its fence, and is left out; how many were is printed.

Files go into a temporary folder that is searched before the repository, so that those of a page, and of
the pages before it, find each other. Each is compiled with -fsyntax-only and the flags of a file of its
kind in build/compile_commands.json (LIKE): defines, include folders, warnings as errors; *.cu as
C++ against tests/cuda_emulation. Errors name the line of the page. CXX: the compiler (g++).
Needs a build folder that CMake has configured; takes a quarter of a minute on one core.
Exit code 0: all compile; 1: one does not, or a block is neither a file nor a fragment.
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
COMMANDS = ROOT / "build/compile_commands.json"
# Page, and the folder of files that its headings name without one.
PAGES = {"docs/adding_an_op.md": "skein/ops/relu_squared",
         "docs/adding_a_pass.md": "skein/passes",
         "docs/adding_a_model.md": "skein/model"}
# By the end of a name, the first that fits: a source that is compiled as such a file would be.
LIKE = {"_test.cc": "skein/ops/add/add_test.cc",
        ".cu": "skein/ops/add/add_cuda.cu",
        "": "skein/ops/add/add.cc"}
FRAGMENT = "<!-- fragment -->"


def fail(message):
    sys.exit(f"doc_snippets_test: {message}")


def files_of_heading(heading, folder):
    names = []
    for name in re.findall(r"`([\w./<>-]*\.(?:h|cc|cu))`", heading):
        if name.startswith(".") and names:
            name = re.sub(r"\.\w+$", name, names[-1])
        elif "/" not in name:
            name = f"{folder}/{name}"
        names.append(name)
    return names


def snippets_of(page, folder):
    """[(file, first line of the page, text)], and the number of fragments."""
    files, fragments, waiting = [], 0, []
    lines = (ROOT / page).read_text().splitlines()
    i = 0
    while i < len(lines):
        if lines[i].startswith("#"):
            waiting = files_of_heading(lines[i], folder)
        fence = lines[i].startswith("```") and lines[i]
        i += 1
        if not fence:
            continue
        first = i
        while i < len(lines) and lines[i] != "```":
            i += 1
        if i == len(lines):
            fail(f"{page}:{first}: the block does not end")
        text = "\n".join(lines[first:i]) + "\n"
        i += 1
        if fence != "```cpp":
            continue
        if first >= 2 and lines[first - 2] == FRAGMENT:
            fragments += 1
        elif waiting:
            files.append((waiting.pop(0), first + 1, text))
        else:
            fail(f"{page}:{first}: no file is named in the heading above this block, or too few: "
                 f"name it there, or put {FRAGMENT} before the fence")
    return files, fragments


def flags_like(source, commands):
    """The flags that say what a source means; not those that say where what is made of it goes."""
    command = commands.get(source)
    if command is None:
        fail(f"{COMMANDS.relative_to(ROOT)} does not have {source}: configure the build again")
    flags, words = [], iter(shlex.split(command))
    next(words)  # the compiler
    for word in words:
        if word in ("-include", "-o", "-x", "-MF", "-MT", "-MQ", "-c"):
            next(words, None)  # with -c: the source
        elif word in ("-I", "-isystem", "-D"):
            flags += [word, next(words)]
        elif re.match(r"-(isystem|[ID]|std=|W|f)", word) and "pch" not in word:
            flags.append(word)
    return flags


def read_commands():
    if not COMMANDS.exists():
        fail(f"there is no {COMMANDS.relative_to(ROOT)}: configure first, with scripts/build.sh")
    commands = {}
    for entry in json.loads(COMMANDS.read_text()):
        name = os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)
        command = entry.get("command") or shlex.join(entry["arguments"])
        commands.setdefault(name, command)
    # Of *.cu what is compiled as C++: a build with nvcc has another entry beside it.
    for entry in json.loads(COMMANDS.read_text()):
        command = entry.get("command") or shlex.join(entry["arguments"])
        if "SKEIN_CUDA_EMULATED" in command:
            commands[os.path.relpath(os.path.join(entry["directory"], entry["file"]), ROOT)] = command
    return commands


def compile_file(folder, name, commands):
    like = next(source for end, source in LIKE.items() if name.endswith(end))
    command = [os.environ.get("CXX", "g++"), "-fsyntax-only", "-I", str(folder)]
    command += flags_like(like, commands)
    path = str(folder / name)
    # A header alone: whoever includes it needs nothing before it.
    command += ["-x", "c++"] + (["-include", path, os.devnull] if name.endswith(".h") else [path])
    done = subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print(f"{name} does not compile:\n{done.stdout}", file=sys.stderr)
    return done.returncode == 0


def write(folder, name, line, text, page):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    # Compilers then speak of the page. What is only written stays as it is there.
    path.write_text((f'#line {line} "{page}"\n' if page else "") + text)


def main():
    only_writes = sys.argv[1:2] == ["--write"]
    if len(sys.argv) != (3 if only_writes else 1):
        fail(__doc__)
    pages = {page: snippets_of(page, folder) for page, folder in PAGES.items()}
    if only_writes:
        for files, _ in pages.values():
            for name, line, text in files:
                write(Path(sys.argv[2]), name, line, text, None)
        return
    commands = read_commands()
    good = True
    with tempfile.TemporaryDirectory() as folder:
        for page, (files, fragments) in pages.items():
            for name, line, text in files:
                if (ROOT / name).exists():
                    fail(f"{page}:{line}: the repository has {name}, which the page is to add")
                write(Path(folder), name, line, text, page)
            compiled = [compile_file(Path(folder), name, commands) for name, _, _ in files]
            good = good and all(compiled)
            print(f"{page}: {sum(compiled)} of {len(files)} files compile, "
                  f"{fragments} fragments skipped", flush=True)
    if not any(files for files, _ in pages.values()):
        fail("no page has a file")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
