"""The harness's own task files, with made-up documents, for evaluation_requests.py --wheel.

The columns of a data set are those that a task's templates name; their kinds are guessed from how they are used,
until the harness takes the documents. Tasks with functions or classes of Python are left out, but for those whose
functions are built into Skein.
"""
import collections
import random
import sys

import jinja2
from jinja2 import nodes

from evaluation_requests import TASKS, case_of
from evaluation_requests_made import FAMILIES, Maker
from lm_eval.tasks._yaml_loader import load_yaml

FIELDS = ("doc_to_text", "doc_to_target", "doc_to_choice", "description", "gen_prefix")
TRIES = 60
KINDS = ("text", "text", "list", "number", "letter", "dict", "digits", "bool", "dicts")
OF_TEXT = {"strip", "lstrip", "rstrip", "split", "replace", "capitalize", "lower", "upper", "title", "startswith", "endswith", "format"}
KNOWN = {"hellaswag": "hellaswag", "winogrande": "winogrande", "wikitext": "wikitext", "copa": "copa", "race": "race",
         "logiqa": "logiqa", "medqa": "medqa", "pubmedqa": "pubmedqa", "mmlu_pro": "mmlu_pro", "xwinograd": "xwinograd"}
ENVIRONMENT = jinja2.Environment()


def functions_marked(value, folder_prefix):
    """Functions that are not resolved are paths of the wheel; here they are named by folder, a whole path, and name."""
    if isinstance(value, str) and value.startswith(folder_prefix):
        folder, _, name = value.rpartition("/")
        return {"!function": name, "folder": folder}
    if isinstance(value, dict):
        return {key: functions_marked(item, folder_prefix) for key, item in value.items()}
    if isinstance(value, list):
        return [functions_marked(item, folder_prefix) for item in value]
    return value


def function_fields(config):
    few = config.get("fewshot_config") or {}
    return [value for part in (config, few) for key, value in part.items() if isinstance(value, dict) and "!function" in value
            or key in ("samples", "sampler") and not isinstance(value, (list, str))]


def templates_of(config):
    few = config.get("fewshot_config") or {}
    texts = [part.get(key) for part in (config, few) for key in FIELDS]
    return [text for text in texts if isinstance(text, str)]


class Shapes(jinja2.visitor.NodeVisitor):
    """For each path of names ("choices.text"), how the templates use it."""

    def __init__(self):
        self.uses = collections.defaultdict(set)
        self.bound = set()

    def path(self, node):
        if isinstance(node, nodes.Name):
            return None if node.name in self.bound or node.name in ("loop", "range") else (node.name,)
        attribute = node.attr if isinstance(node, nodes.Getattr) else None
        if isinstance(node, nodes.Getitem) and isinstance(node.arg, nodes.Const) and isinstance(node.arg.value, str):
            attribute = node.arg.value
        parent = self.path(node.node) if isinstance(node, (nodes.Getattr, nodes.Getitem)) else None
        return parent + (attribute,) if parent and attribute else None

    def generic_visit(self, node):
        if isinstance(node, nodes.Call) and isinstance(node.node, nodes.Getattr):  # a method, and no column
            if path := self.path(node.node.node):
                self.uses[path].add("text" if node.node.attr in OF_TEXT else "list" if node.node.attr == "index" else "dict")
            for part in (node.node.node, *node.args, *(pair.value for pair in node.kwargs)):
                self.visit(part)
            return
        if isinstance(node, (nodes.Getattr, nodes.Getitem)) and (path := self.path(node)):
            self.uses[path].add("any")
        elif isinstance(node, nodes.Getitem) and (path := self.path(node.node)):
            self.uses[path].add("list")
        elif isinstance(node, nodes.For) and (path := self.path(node.iter)):
            self.uses[path].add("list")
        elif isinstance(node, nodes.Filter) and node.name in ("join", "map", "list", "length") and (path := self.path(node.node)):
            self.uses[path].add("list")
        elif isinstance(node, nodes.Name) and node.ctx == "load" and (path := self.path(node)):
            self.uses[path].add("any")
        elif isinstance(node, nodes.Name):
            self.bound.add(node.name)
        super().generic_visit(node)


def uses_of(config):
    shapes = Shapes()
    for text in templates_of(config):
        if "{" not in text and text.isidentifier():
            shapes.uses[(text,)].add("any")
        try:
            shapes.visit(ENVIRONMENT.parse(text))
        except jinja2.TemplateError:
            continue
    return shapes.uses


def value_of(kind, maker, choices):
    letter = maker.random.randrange(choices)
    return {"text": maker.sentence, "list": lambda: maker.texts(choices), "number": lambda: letter, "digits": lambda: str(letter),
            "letter": lambda: "ABCDEFGHIJ"[letter], "bool": lambda: bool(letter % 2),
            "dict": lambda: {"text": maker.texts(choices), "label": list("ABCDEFGHIJ")[:choices]},
            "dicts": lambda: [{"text": text, "label": "ABCDEFGHIJ"[i]} for i, text in enumerate(maker.texts(choices))]}[kind]()


def columns_of(uses, pick, choices):
    """A function that makes a row, with a kind for each path."""
    kinds = {}
    for path, how in uses.items():
        wanted = [kind for kind in ("text", "list") if kind in how]
        kinds[path] = pick.choice(wanted) if wanted and pick.random() < 0.7 else pick.choice(KINDS)
        last = path[-1].lower()
        if last in ("label", "labels", "answer", "answerkey", "gold", "idx", "target") and pick.random() < 0.6:
            kinds[path] = pick.choice(["number", "letter", "digits", "list"])
        if last == "labels" and len(path) > 1:
            kinds[path] = "letters"
    parents = {path[:-1] for path in uses if len(path) > 1}

    def row(maker, _):
        made = {}
        for path in sorted(uses, key=len):
            if path in parents and not isinstance(made.get(path), str):
                value = {}
            else:
                kind = kinds[path]
                value = list("ABCDEFGHIJ")[:choices] if kind == "letters" or path[-1] == "label" and kind == "list" \
                    else value_of(kind, maker, choices)
            at = made
            for name in path[:-1]:
                at = at[name] if isinstance(at.get(name), dict) else at.setdefault(name, {})
            at[path[-1]] = value
        return made

    return row


def splits_of(config, row, seed):
    maker = Maker(seed)
    few = config.get("fewshot_config") or {}
    names = [config.get(key) for key in ("training_split", "validation_split", "test_split", "fewshot_split")] + [few.get("split")]
    return {name: maker.rows(7, row) for name in dict.fromkeys(name for name in names if name)}


def has_texts(case):
    """Whether the choices are lists of texts: the harness also takes others, of which no score can come."""
    choices = [document["choices"] for document in case["expected"]]
    return all(isinstance(of_one, list) and all(isinstance(text, str) for text in of_one) for of_one in choices)


def case_of_task(name, config, shapes):
    """A case that the harness takes, or None."""
    key = repr([templates_of(config), config.get("doc_to_choice"), config.get("doc_to_target"), config.get("output_type")])
    uses = uses_of(config)
    pick = random.Random(name)
    if key in shapes and shapes[key] is None:
        return None
    seeds = ([shapes[key]] if key in shapes else []) + [pick.random() for _ in range(TRIES)]
    options = {"limit": 2}
    if not (config.get("num_fewshot") or 0) and config.get("output_type") != "loglikelihood_rolling":
        options["num_fewshot"] = pick.choice([0, 1, 2])
    if pick.random() < 0.3:
        options.update(chat=True, multiturn=pick.random() < 0.5, system=pick.choice(["", "Be brief."]))
    for seed in seeds:
        row = columns_of(uses, random.Random(seed), random.Random(seed).choice([2, 3, 4, 4, 5, 10]))
        case = case_of(name, config, splits_of(config, row, seed), options)
        if "expected" in case and has_texts(case):
            shapes[key] = seed
            return case
    shapes[key] = None
    return None


def wheel_cases():
    rows = {name: columns for name, columns, _ in FAMILIES}
    cases, shapes, left_out = [], {}, collections.Counter()
    for path in sorted(TASKS.rglob("*.yaml")):
        try:
            config = functions_marked(load_yaml(path, resolve_func=False), str(TASKS))
        except Exception:  # noqa: BLE001
            left_out["no YAML of its own"] += 1
            continue
        if not isinstance(config.get("task"), str) or "class" in config or config.get("group"):
            left_out["group or class"] += 1
            continue
        for key in ("tag", "metadata", "dataset_kwargs", "group", "task_list", "metric_list", "filter_list", "unsafe_code",
                    "doc_to_decontamination_query", "should_decontaminate"):
            if key not in ("metric_list",):
                config.pop(key, None)
        config["metric_list"] = [one for one in config.get("metric_list") or [] if one.get("metric") == "acc_mutual_info"] or None
        if config["metric_list"] is None:
            del config["metric_list"]
        name = config.pop("task")
        if function_fields(config) or "process_results" in config:
            folder = path.parent.name
            if folder not in KNOWN:
                left_out["functions"] += 1
                continue
            case = case_of(name, config, splits_of(config, rows[KNOWN[folder]], len(cases)), {"limit": 3, "num_fewshot": 1})
            if "expected" not in case:
                left_out["functions"] += 1
                continue
        else:
            case = case_of_task(name, config, shapes)
        if case is None:
            left_out["no documents found"] += 1
            print("no documents found:", name, file=sys.stderr)
            continue
        cases.append(case)
        if len(cases) % 500 == 0:
            print(len(cases), "tasks", file=sys.stderr)
    print(dict(left_out), file=sys.stderr)
    return cases
