#!/usr/bin/env python3
"""Writes the compile commands that clang-tidy can use: without g++'s precompiled headers, and with one
command for each source of a batch.

    scripts/tidy_database.py COMPILE_COMMANDS > TIDY_COMMANDS
"""
import json
import re
import sys

NOT_CLANGS = re.compile(r" -(fpch-preprocess|Winvalid-pch|Wno-restrict|Wno-stringop-over\w*|-param=ggc\S*|include \S*cmake_pch\.hxx)")


def sources(file):
    if "/Unity/" not in file:
        return [file]
    with open(file) as batch:
        return re.findall(r'^#include "(.*)"', batch.read(), re.MULTILINE)


commands = []
with open(sys.argv[1]) as database:
    for entry in json.load(database):
        for source in sources(entry["file"]):
            command = NOT_CLANGS.sub("", entry["command"]).replace(entry["file"], source)
            commands.append({**entry, "command": command, "file": source})
json.dump(commands, sys.stdout, indent=1)
