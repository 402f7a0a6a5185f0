#!/usr/bin/env python3
"""Judges skein/evaluate/yaml and skein/evaluate/tasks by PyYAML and lm-evaluation-harness (lm-eval==0.4.13).

    scripts/goldens/evaluation_tasks.py               makes skein/evaluate/testdata/tasks/*.json
    scripts/goldens/evaluation_tasks.py --all FILE    compares all tasks and groups of the wheel; FILE is what
        SKEIN_TASKS=.../lm_eval/tasks SKEIN_DUMP_TASKS=FILE skein_evaluate_test --gtest_filter='*DumpsAll*'
      writes
    scripts/goldens/evaluation_tasks.py --yaml TEXT   prints what PyYAML makes of TEXT
"""

import argparse
import collections
import datetime
import json
import logging
from pathlib import Path

import yaml
from lm_eval.config.task import TaskConfig
from lm_eval.tasks import _factory, _yaml_loader
from lm_eval.tasks._index import Kind, TaskIndex
from lm_eval.tasks.manager import TaskManager

OUT = Path(__file__).resolve().parents[2] / "skein" / "evaluate" / "testdata" / "tasks"
KINDS = {Kind.TASK: "task", Kind.PY_TASK: "class", Kind.GROUP: "group", Kind.TAG: "tag"}


class Function:
    """What `!function name` gives; nothing is imported."""

    def __init__(self, name):
        self.name = name
        self.__name__ = name.rpartition(".")[2]

    def __call__(self, *arguments, **named):
        raise RuntimeError("not called")

    def __deepcopy__(self, memo):
        return self


class Task:
    """Stands for lm_eval's ConfigurableTask, which would load the documents."""

    def __init__(self, config):
        self.config = TaskConfig(**config)
        self.task_name = self.config.task


_yaml_loader._import_func_in_yml = lambda name, folder: Function(name)
_factory.ConfigurableTask = Task


# ---- YAML


def loader():
    class Loader(yaml.CSafeLoader):
        pass

    Loader.add_constructor("!function", lambda self, node: Function(self.construct_scalar(node)))
    return Loader


def shown(value):
    """repr(), with what skein makes of dates and functions."""
    if isinstance(value, Function):
        return f"<function {value.name}>"
    if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
        return repr(str(value))
    if isinstance(value, dict):
        return "{" + ", ".join(f"{shown(key)}: {shown(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(shown(one) for one in value) + "]"
    return repr(value)


def yaml_answer(text):
    try:
        return shown(yaml.load(text, Loader=loader()))
    except Exception:
        return None  # refused


SCALARS = """yes Yes YES yEs no No NO nO on On ON off Off OFF true True TRUE tRUE false False FALSE y Y n N
null Null NULL nULL ~ none None 0 1 -1 +1 007 08 09 0o7 010 0_7 00 -017 +017 0b101 -0b11 0b2 0b1_0 0x1F 0xfg -0xA 0x_1
1_000 _1 1__0 1_ 10:30 1:60 1:5 1:05:59 -1:30 0:30 01:30 1:30.5 0:30.5 -1:30.25 1:5:5. 1e3 1E3 1e+3 1.5e3 1.5e+3
1.5E-3 1. .5 -.5 +.5 5.e+1 .5e+1 1_0.5_0 1.5.2 .inf -.inf +.inf .Inf .INF .iNF .nan .NaN .NAN -.nan nan inf . .. ._
- + -a 1a 0x 0b 0. 00.5 -0 -0.0 9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809
123456789012345678901234567890 1.0e+400 -1.0e+400 1.0e-400 0.1 3.141592653589793 1e-7 1.0e-7 123456789.123456789
2024-01-31 2024-1-31 12:30:45 2024-01 a:b a#b #a a@b @a 1,000 = << <<a 0.0.0 1-2 +12e3 0e0 0e+0 0.e+0 0x1_F""".split()

TEXTS = [
    "", "\n", "# only a comment\n", "---\n", "--- a\n", "---\na: 1\n...\n", "a: 1\n---\nb: 2\n", "a", "- a\n- b\n",
    "a: 1\nb: two\n", "a:\n  b:\n    c: 1\n", "a:\n- 1\n- 2\n", "a:\n  - 1\n  -  2\n", "[1, 2, [3, 'x']]",
    "{a: 1, b: [x, y], c: {d: e}}", "{a, b: 1}", "[a: 1, b]", "a: [1,\n2,\n 3\n]\n", "a: {b: 1,\n c: 2\n}\n",
    "a: []\nb: {}\nc:\n", "- - 1\n  - 2\n- - 3\n", "- a: 1\n  b: 2\n- c: 3\n", "? a\n: 1\n? b\n", "? [x]\n: 1\n",
    "1: a\n1.5: b\ntrue: c\nnull: d\n~: e\n", "a: 1\nb: 2\na: 3\n", "1: a\ntrue: b\n1.0: c\n",
    "a: 'it''s'\n", 'a: "x\\ty\\n\\u00e9\\x41\\\\ \\" \\/ \\0 \\e \\L \\P \\xe9 \\U0001f642"\n', 'a: "bad \\q"\n', "a: 'x\n  y\n\n  z'\n",
    'a: "x\n  y\n\n\n  z"\n', 'a: "x\\\n   y \\\n  z"\n', 'a: "  lead\n  and trail  "\n', "a: x\n  y\n\n  z\n",
    'a: "x\ny"\nb: 1\n', "a: 'x\ny: z'\nb: 1\n", "a: x y   # comment\n", "a: x#y\n", "a: 'x' # c\n", "a: http://x.y/z\n",
    "a: b: c\n", "a: -b\n", "a: - b\n", "a: ?b\n", "a: {{question}}\n", "a: '{{question}}'\n", "a: \"{{q}}\\nAnswer:\"\n",
    "a: |\n  x\n   y\n  z\n", "a: |\n  x\n\n  y\n\n\nb: 1\n", "a: |-\n  x\n\n", "a: |+\n  x\n\n\nb: 1\n", "a: |2\n   x\n  y\n",
    "a: |\n\n\n  x\n", "a: |\n  \n   x\n", "a: >\n  x\n  y\n\n  z\n", "a: >\n  x\n\n\n  y\n   more\n   still\n  z\n", "a: >-\n  x\n  y\n",
    "a: >+\n  x\n\n\n", "a: >\n  x\n\n   more\n\n  y\n", "a: >\n\n  x\n  y\n", "a: >\n   more\n  less\n", "a: >1\n  x\n y\n",
    "a: |  # comment\n  x\n", "a: |\n  # not a comment\n  x # nor this\n", "a: |", "a: |\nb: 1\n", "a: >\nb: 1\n",
    "a: |\n  x", "a: >-\n  x\n\n  y", "a: |\n  x\n # comment\nb: 1\n", "- |\n x\n- >\n y\n z\n", "a:\n  - |\n    x\n\n  - y\n",
    "a: |\n  \tx\n", "a:\tx\n", "a: x\ty\n", "\ta: x\n", "a:\n\tb: x\n", "a: x\t# c\n", "- \ta\n", "[a,\tb]",
    "a: &x 1\nb: *x\n", "a: &x {k: 1}\nb: *x\nc: *x\n", "a: *x\n", "a: &x 1\nb: &x 2\n", "a: &x [*x]\n", "&a k: 1\nb: *a\n",
    "a: &x {k: 1, l: 2}\nb: {<<: *x, l: 3}\n", "a: &x {k: 1, l: 2}\nb:\n  l: 3\n  m: 4\n  <<: *x\n  k: 5\n",
    "a: &x {k: 1}\nb: &y {l: 2}\nc: {<<: [*x, *y], m: 3}\n", "a: &x {k: 1}\nb: &y {<<: *x, l: 2}\nc: {<<: *y}\n",
    "a: {<<: {k: 1}, l: 2}\n", "a: {<<: 1}\n", "a: {<<: [1]}\n", "a: {<<: null}\n", "a: {'<<': 1}\n", "a: {\"<<\": {k: 1}}\n", "- <<\n",
    "a: &x {k: 1}\nb:\n  <<: *x\n  <<: {l: 2}\n", "=: 1\n", "a: =\n", "'=': 1\n",
    "a: !function utils.f\n", "a: !function 'utils.f'\n", "a: [!function utils.f, !function b.c.d]\n", "a: !function [x]\n", "a: !function {x: 1}\n",
    "a: !!str 1\n", "a: !!str\n", "a: !!int '7'\n", "a: !!int x\n", "a: !!float 1\n", "a: !!float '1.5'\n", "a: !!bool 'yes'\n", "a: !!bool maybe\n", "a: !!null x\n",
    "a: !!seq [1]\n", "a: !!map {b: 1}\n", "a: !!seq {b: 1}\n", "a: !!map [1]\n", "a: !!str [1]\n", "a: !other x\n", "a: !!python/name:os.system\n", "a: !<tag:yaml.org,2002:int> '7'\n",
    "%YAML 1.1\n---\na: 1\n", "%TAG ! tag:x,2000:\n---\na: 1\n", "\ufeffa: 1\n", "a: 'x\u00a0y\u3000z'\n", "é: ü\n日本: [语]\n", "a: \U0001f642\n",
    "a: 'x\x07y'\n", "a: \x7f\n", "a: 1\r\nb: 'x\r\n  y'\r\nc: |\r\n  z\r\n", "a: 1\rb: 2\r", "a: [1, 2\n", "a: 'x\n", "a: }\n", "a: ]\n", "a: b\n c: d\n", "a: b\n- c\n",
    " a: 1\nb: 2\n", "a: 1\n b: 2\n", "a: @x\n", "a: `x\n", "a: %x\n", "a: ,x\n", "a: x,y\n", "[x,, y]", "[,]", "{,}", "{a: 1,}", "[1,]", "[a b, c d]", "{a: b c, d: 'e'}", "{a: }", "{a: , b: 1}", "{a:1}", "{'a':1}", "{\"a\":[1]}", "[a:b]", "[x]: 1\n", "{a: 1}: 2\n",
    "a:  \n  b\n", "a:\n  b\n  c\n", "a:\n\n  - 1\n\n  - 2\n", "a: 1 # x\n# y\nb: 2\n", "a:\n# c\n  b: 1\n", "a:   'x'   \n", "'a b': 1\n", '"a\\nb": 1\n', "a b: 1\n", "a : 1\n", "a :b\n", "-a: 1\n", "- - - a\n", "-\n  a: 1\n-\n  b: 2\n", "- \n", "-\n", "a: -\n", "a: - \n", "--a: 1\n", "...\n", "a: ...\n", "a: |\n  ---\n  ...\n", "a: 'x\n--- y'\n",
    "until:\n  - \"Q:\"\n  - \"\\n\\n\"\n  - \"</s>\"\nregex: '(?<=x )(.*)(?=.)'\n", "t: \"Q: {{q}}\\nA. {{c[0]}}\\nAnswer:\"\nd: [\"A\", 'B']\n", "t: {{q}} x\n", "t: \"a\" b\n", "t: 'a'b\n", "t: a 'b'\n", "t: a \"b\"\n",
    "a: [x, y\n  z, 'p\n  q']\n", "a: {k: x\n  y}\n", "a: [{k: 1}, {l: 2}]\n", "a:\n  - k: |\n      x\n    l: 1\n", "a: x: y\n", "a: 'x': y\n", "a: 'x\u2028y'\n", "a: 'x\x85y'\n", "a: x\u2029  y\n", "a: \ufeffb\n", "[?x]", "a: ! 1\n", "a: ! 'x'\n", "a: ! '1'\n", "a: &b ! 1\n", "!", 'a: "\\_ \\N"\n',
    "a: 'x\n\n\n  '\n", 'a: "x\n\n  "\n', 'a: "x"y\n', "a: \"x\n", "x\ny: 1\n", "a: >\n  x\n  # y\n  z\n", "a: 1\n\n\n", "a: \"\"\nb: ''\n", "a: \"x\n\n\"\n", "a: '\n\n  x'\n", "a: \"\\\n  x\"\n", "a: \"x  \n  y\"\n", "a: 'x  \n\n  y'\n",
]

# PyYAML reads it, skein refuses it: see yaml_value.h.
REFUSED_HERE = [
    "a: &x {k: 1}\nb: &y {k: 2}\nc: {<<: [*x, *y]}\n", "2024-01-31 12:30:45", "2024-01-31T12:30:45.5Z", "a: !!set {x}\n", "a: !!binary aGk=\n",
    "a: !!timestamp 2024-01-31\n", "a: !!omap [x: 1]\n", "a: !!pairs [x: 1]\n", "0x10000000000000000", "a: &x [1, *x]\n", "a: !function\n",
]


def yaml_cases():
    cases = [{"text": text, "value": yaml_answer(text)} for text in SCALARS + TEXTS]
    for text in REFUSED_HERE:
        yaml.load(text, Loader=loader())  # must not raise
    return cases + [{"text": text, "value": None} for text in REFUSED_HERE]


# ---- tasks


def plain(value):
    """Values as JSON; a function is {"!function": name}."""
    if isinstance(value, Function):
        return {"!function": value.name}
    if isinstance(value, dict):
        return {key if isinstance(key, str) else f"{type(key).__name__} {key}": plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value


def config_of(manager, entry):
    config = manager._factory._load_full_config(entry, None)
    for key in ("tag", "group", "task_list"):
        config.pop(key, None)
    return plain(TaskConfig(**config).to_dict(keep_callable=True))


def tree_of(item):
    if isinstance(item, Task):
        return {"task": plain(item.config.to_dict(keep_callable=True))}
    config = plain(item.to_dict())
    config["task"] = item.child_names
    children = [tree_of(child) for child in item]
    return {"group": {key: value for key, value in config.items() if value is not None}, "children": children}


def answer(manager, name, entry):
    row = {"name": name, "kind": KINDS[entry.kind]}
    try:
        if entry.kind is Kind.TASK:
            row["config"] = config_of(manager, entry)
        elif entry.kind is Kind.GROUP:
            row["tree"] = tree_of(manager._load_spec(name))
        elif entry.kind is Kind.TAG:
            row["members"] = sorted(entry.tags)
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
    return row


def manager_of(folders):
    manager = TaskManager(include_defaults=False)
    manager._index = TaskIndex.build([Path(folder) for folder in folders])
    return manager


def task_cases():
    manager = manager_of([OUT / "first", OUT / "second"])
    rows = [answer(manager, name, entry) for name, entry in sorted(manager._index.items())]
    for row in rows:
        if "error" in row:
            row["error"] = True  # its text is theirs
    return json.loads(json.dumps(rows).replace(str(OUT) + "/", "")), sorted(manager._index)


# ---- all of the wheel


def strict(value):
    return json.dumps(value, sort_keys=True)


def difference(ours, theirs, path=""):
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(set(ours) | set(theirs)):
            if strict(ours.get(key)) != strict(theirs.get(key)):
                return difference(ours.get(key), theirs.get(key), f"{path}.{key}")
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for i, (one, other) in enumerate(zip(ours, theirs)):
            if strict(one) != strict(other):
                return difference(one, other, f"{path}[{i}]")
    return f"{path}: {strict(ours)[:200]} here, {strict(theirs)[:200]} there"


def has_function(value):
    return '"!function"' in json.dumps(value)


def compare_all(dump):
    manager = TaskManager()
    theirs = {name: answer(manager, name, entry) for name, entry in list(manager._index.items())}
    ours = {row["name"]: row for row in map(json.loads, Path(dump).read_text().splitlines())}
    print(f"names: {len(theirs)} there, {len(ours)} here, {len(set(theirs) ^ set(ours))} in one alone")
    counts, examples = collections.Counter(), collections.defaultdict(list)
    for name, row in theirs.items():
        other = ours.get(name, {"kind": "missing"})
        kind = row["kind"] + (" without Python" if "config" in row and not has_function(row["config"]) else "")
        body = {key: value for key, value in row.items() if key != "error"}
        if "error" in row or "error" in other:
            what = ("refused by both" if "error" in row and "error" in other else
                    "refused here" if "error" in other else "refused there")
            examples[kind, what].append(f"{name}: {other.get('error', row.get('error'))}")
        else:
            what = "equal" if strict(body) == strict(other) else "different"
            if what == "different":
                examples[kind, what].append(f"{name}: {difference(other, body)}")
        counts[kind, what] += 1
    for (kind, what), count in sorted(counts.items()):
        print(f"{count:6} {kind}: {what}")
        for example in examples[kind, what][:6]:
            print("       ", example[:500])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--all", metavar="FILE")
    parser.add_argument("--yaml", metavar="TEXT")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)
    if arguments.yaml is not None:
        return print(yaml_answer(arguments.yaml))
    if arguments.all:
        return compare_all(arguments.all)
    (OUT / "yaml_cases.json").write_text(json.dumps(yaml_cases(), indent=0) + "\n")
    rows, names = task_cases()
    (OUT / "task_cases.json").write_text(json.dumps(rows, indent=1) + "\n")
    print(f"{len(SCALARS) + len(TEXTS)} YAML texts, {len(names)} names")


if __name__ == "__main__":
    main()
