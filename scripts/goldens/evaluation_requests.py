#!/usr/bin/env python3
"""Writes skein/evaluate/testdata/requests: the requests that lm-evaluation-harness makes of made-up tasks and
documents, and what ast.literal_eval reads of made-up texts. Needs lm_eval 0.4.13; no test runs this.

    scripts/goldens/evaluation_requests.py              made-up tasks: cases.txt, literals.txt
    scripts/goldens/evaluation_requests.py --wheel DIR  the harness's own task files with made-up documents:
                                                        DIR/wheel.jsonl, which the test reads where
                                                        SKEIN_EVALUATION_REQUESTS names it
"""
import ast
import copy
import importlib.util
import json
import logging
import math
import random
import sys
from pathlib import Path

import datasets
import lm_eval
from lm_eval.api.task import ConfigurableTask

sys.path.insert(0, str(Path(__file__).resolve().parent))

OUT = Path(__file__).resolve().parents[2] / "skein" / "evaluate" / "testdata" / "requests"
TASKS = Path(lm_eval.__file__).parent / "tasks"


def function(folder, name):
    """What `!function name` is in a golden; `folder` holds the YAML file."""
    return {"!function": name, "folder": folder}


def resolved(value):
    """`value` with the harness's own functions in it."""
    if isinstance(value, dict) and "!function" in value:
        module, _, name = value["!function"].rpartition(".")
        path = TASKS / value["folder"] / (module + ".py")
        spec = importlib.util.spec_from_file_location(module, path)
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return getattr(made, name)
    if isinstance(value, dict):
        return {key: resolved(item) for key, item in value.items()}
    if isinstance(value, list):
        return [resolved(item) for item in value]
    return copy.deepcopy(value)


class MadeTask(ConfigurableTask):
    def __init__(self, config, splits):
        self.made = splits
        super().__init__(config=config)

    def download(self, dataset_kwargs=None, **kwargs):
        self.dataset = {name: datasets.Dataset.from_list(rows) for name, rows in self.made.items()}


def chat(messages, add_generation_prompt=True):
    text = "".join(f"<{m['role']}>{m['content']}</{m['role']}>\n" for m in messages)
    if add_generation_prompt:
        return text + "<assistant>"
    return text[:-len(f"</{messages[-1]['role']}>\n")]


def requests_of(config, splits, options):
    """What the harness asks, for each document; or the kind of its error."""
    task = MadeTask(resolved(config), copy.deepcopy(splits))
    shots = options.get("num_fewshot")
    if shots is not None and task.config.num_fewshot != 0:
        task.set_config("num_fewshot", shots)
    elif task.config.num_fewshot is None:
        task.set_config("num_fewshot", 0)
    task.set_fewshot_seed(options.get("seed", 1234))
    limit = options.get("limit")
    if limit is not None:
        limit = math.ceil(len(task.eval_docs) * limit) if limit < 1 else int(limit)
    with_chat = options.get("chat", False)
    task.build_all_requests(limit=limit, rank=0, world_size=1, system_instruction=options.get("system"),
                            apply_chat_template=with_chat, chat_template=chat if with_chat else None,
                            fewshot_as_multiturn=options.get("multiturn", True))
    documents = {}
    for instance in task.instances:
        made = documents.setdefault(instance.doc_id, {
            "text": repr(task.doc_to_text(instance.doc)), "target": repr(task.doc_to_target(instance.doc)),
            "choices": task.doc_to_choice(instance.doc) if task.config.doc_to_choice is not None else [],
            "requests": []})
        # Generation settings are the task's, and no part of a request here.
        arguments = [part for part in instance.args if not isinstance(part, dict)]
        if not all(isinstance(part, str) for part in arguments):
            raise TypeError("a request that is no text")
        made["requests"].append([instance.request_type, *arguments])
    return [documents[key] for key in sorted(documents)]


def case_of(name, config, splits, options=None):
    """A line of a golden: the task, its documents as `datasets` gives them, and what is asked."""
    options = options or {}
    config = {"task": name, "dataset_path": "made", **config}
    splits = {split: list(datasets.Dataset.from_list(rows)) for split, rows in splits.items()}
    case = {"name": name, "config": config, "splits": splits, "options": options}
    try:
        case["expected"] = requests_of(config, splits, options)
        json.dumps(case)
    except Exception as error:  # noqa: BLE001: any error of the harness is an expected one
        case["error"] = type(error).__name__
    return case


LITERAL_PARTS = ["'a'", '"b"', "'it\\'s'", "'\\n\\t\\\\'", "'\\x41\\u00e9\\U0001f642\\101\\q'", "r'\\n'", "u'ü'", "'''x\ny'''",
                 '"""q"""', "b'x'", "f'x'", "1", "0", "-1", "+2", "--3", "1_000", "0x1F", "0b101", "0o17", "007", "00", "1.5",
                 ".5", "5.", "1e5", "1E-3", "-2.5e+10", "1e999", "9223372036854775807", "9223372036854775808",
                 "-9223372036854775808", "123456789012345678901234567890", "1j", "1+2j", "1 + 2", "True", "False", "None",
                 "-True", "x", "[]", "()", "{}", "(1,)", "(1)", "-(1)", "[1, 2]", "[1, 2,]", "[,]", "(,)", "{'a': 1, 'b': [2]}",
                 "{'a': 1, 'a': 2}", "{1: 2, True: 3}", "{1, 2}", "set()", "...", "'a' 'b'", "'a' \"b\" r'\\c'", "('a' 'b')",
                 "1 2", "'a'1", "1, 2", "1,", "[1, # note\n 2]", "# only", "1 # end", "1 \\\n+ 2", "[1,\n\n2]", "'open", "'a\nb'",
                 "'\\x4'", "'\\u12'", "'\\N{BULLET}'", "'\\ud83d'", "'\\\n'", "'''a''' 'b'", "['a' 'b', 'c']", "{'a' 1}", "{**{}}",
                 "[*[1]]", "1if 1 else 2", "1_", "1__0", "0x", "1e", "'\t'", "'é漢🙂'", "[[[[1]]]]", "(((1)))", "{(1, 2): 'a'}",
                 "{[1]: 2}", "a.b", "f()", "[x for x in []]", "lambda: 1", "not 1", "1 < 2", "''", '""', "\"\"\"a\"b\"\"\"",
                 "'a'\n", "\n'a'", "\n 'a'", "'a'\n\n", "'a'\n'b'", "'a' \t", "\r'a'\r\n", "'a\\\r\nb'", "0_0", "1.e3", "1._0", "٣"]


def is_value(value):
    """Whether Skein has such a value: no bytes, sets, complex numbers, ellipses, halves of surrogate pairs."""
    if isinstance(value, str):
        return not any(0xd800 <= ord(character) < 0xe000 for character in value)
    if isinstance(value, dict):
        return all(is_value(part) for pair in value.items() for part in pair)
    if isinstance(value, (list, tuple)):
        return all(is_value(item) for item in value)
    return value is None or isinstance(value, (bool, int, float))


def literal_case(text):
    try:
        value = ast.literal_eval(text)
        has_name = "\\N{" in text  # of a character, which Skein does not know
        if is_value(value) and not has_name:
            return {"source": text, "repr": repr(value)}
        return {"source": text, "error": "unsupported"}
    except (SyntaxError, ValueError):
        return {"source": text, "error": "invalid"}
    except TypeError:
        return {"source": text, "error": "unsupported"}


def literal_cases():
    pick = random.Random(5)
    texts = list(LITERAL_PARTS) + ["", " ", "   1", "\t'a'", "[" * 200 + "]" * 200, "(" * 201 + ")" * 201, "9" * 4300, "9" * 4301,
                                   "[1, 'a', None, {'k': (1, 2)}, -0.0]", "'\x00'"]
    for _ in range(600):
        parts = [pick.choice(LITERAL_PARTS) for _ in range(pick.randint(1, 3))]
        form = pick.choice(["[{}]", "({})", "{{{}}}", "{{'k': {}}}", "{}", "[{},]", " [ {} ] "])
        texts.append(form.format(pick.choice([", ", ",", " ", "\n,"]).join(parts)))
    for _ in range(200):
        text = list(pick.choice(texts[:160]))
        for _ in range(pick.randint(1, 2)):
            at = pick.randrange(len(text) + 1)
            if text and pick.random() < 0.5:
                text[min(at, len(text) - 1)] = pick.choice("'\"\\[](){},:#-+ \n1a")
            else:
                text.insert(at, pick.choice("'\"\\[](){},:#-+ \n1a"))
        texts.append("".join(text))
    return [literal_case(text) for text in dict.fromkeys(texts)]


def write(path, cases):
    with open(path, "w") as file:
        for case in cases:
            print(json.dumps(case, ensure_ascii=False), file=file)
    refused = sum("error" in case for case in cases)
    print(f"{path}: {len(cases)} cases, {refused} of them errors", file=sys.stderr)


def main():
    logging.disable(logging.CRITICAL)
    datasets.disable_progress_bars()
    if len(sys.argv) == 3 and sys.argv[1] == "--wheel":
        from evaluation_requests_wheel import wheel_cases
        return write(Path(sys.argv[2]) / "wheel.jsonl", wheel_cases())
    from evaluation_requests_made import made_cases
    OUT.mkdir(parents=True, exist_ok=True)
    write(OUT / "cases.txt", made_cases())
    write(OUT / "literals.txt", literal_cases())


if __name__ == "__main__":
    main()
