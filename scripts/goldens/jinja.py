#!/usr/bin/env python3
"""Writes skein/jinja/testdata/cases.txt: what transformers renders of the templates beside it with several
conversations, and of random expressions and templates. Needs transformers and jinja2; no test runs this.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts/judge"))
import jinja_templates as judge  # noqa: E402

OUT = ROOT / "skein/jinja/testdata"
RANDOM = 1500

cases = []
for path in sorted((OUT / "templates").glob("*.jinja")):
    source = path.read_text()
    for i, variables in enumerate(judge.conversations()):
        if i % 3 == 0 or variables["tools"] is None and not variables["add_generation_prompt"]:
            cases.append({"template": source, "variables": variables, "expected": judge.rendered(source, variables)})
for case in judge.random_cases(RANDOM, seed=7):
    error = "error" in case["expected"]
    words = set(re.findall(r"\w+", case["template"]))
    refused = "generation" in words and "text" in case["expected"] and re.search(
        r"(call|set|macro|filter|generation).*generation", case["template"], re.S)
    # A generator is read at once here, not where its items are needed: an error in it comes earlier.
    lazy = words & {"map", "select", "reject", "selectattr", "rejectattr", "batch", "slice", "unique", "items"}
    read = re.search(r"\|(list|join|first|sum|sort|length|min|max)\b", case["template"]) and not re.search(r"\b(in|if)\b", case["template"])
    if error and len(cases) % 4 or refused or lazy and not error and not read:
        continue
    if len(case["template"]) + len(str(case["expected"])) > 400:
        continue
    if error:
        case["expected"]["error"] = re.sub(r"0x[0-9a-f]+", "0x", case["expected"]["error"])[:80]
    case["variables"] = {name: value for name, value in case["variables"].items() if name in words}
    cases.append(case)
with open(OUT / "cases.txt", "w") as file:
    for case in cases:
        print(json.dumps(case, ensure_ascii=False), file=file)
print(len(cases), "cases", file=sys.stderr)
