#!/usr/bin/env python3
"""Makes skein/evaluate/testdata/metrics/*.json: what lm-evaluation-harness and Python's `re` make of made-up answers.

    scripts/goldens/evaluation_metrics.py [--cases N] [--seed S] [--out DIR]

Needs lm-eval 0.4.13 (with datasets and scikit-learn) on Python 3.11, whose sum() does not correct errors.
--cases says how many cases of filters there are; the other files have a share of it. For a larger comparison, which
is not committed, write to another folder, and run the tests with its files in place of testdata/metrics.
"""

import argparse
import json
import math
import os
import random
import re
import signal
import warnings
from pathlib import Path

os.environ["DISABLE_MULTIPROC"] = "1"
os.environ["TQDM_DISABLE"] = "1"
warnings.simplefilter("ignore")

import datasets  # noqa: E402
import numpy as np  # noqa: E402
from lm_eval.api import metrics as judge  # noqa: E402
from lm_eval.api.registry import get_aggregation  # noqa: E402
from lm_eval.api.task import ConfigurableTask  # noqa: E402
from lm_eval.filters import build_filter_ensemble  # noqa: E402

OUT = Path(__file__).resolve().parents[2] / "skein" / "evaluate" / "testdata" / "metrics"


class TooLate(Exception):
    pass


def ring(*_):
    raise TooLate()


def plain(value):
    """A value as JSON: numbers that are not finite are texts."""
    if isinstance(value, (bool, np.bool_)) or value is None or isinstance(value, str):
        return bool(value) if isinstance(value, np.bool_) else value
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if math.isfinite(value) else repr(float(value))
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value]


# Expressions

CHARACTERS = list("abAB01_ .,-#$") + ["é", "İ", "i", "I", "ı", "ß", "K", "\u212a", "ſ", "中", "\u00a0", "\x1c", "\n",
                                      "٣", "²", "ΐ", "ﬅ", "ﬆ", "\u0301", "😀"]
ESCAPES = ["\\d", "\\D", "\\s", "\\S", "\\w", "\\W", "\\.", "\\n", "\\t", "\\$", "\\x41", "\\u00e9", "\\U0001F600",
           "\\-", "\\101", "\\0", "\\\\", "\\ "]
RANGES = ["a-c", "A-F", "0-9", "a-z", "\\x30-\\x39", "à-ÿ", "H-k", "\u0100-\u0140", "0-\\d", "z-a", "一-龥"]
REPEATS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{1,}", "{", "{a", "*?", "+?", "??", "{0,2}?", "*+", "?+"]
FLAGS = ["(?i)", "(?s)", "(?m)", "(?x)", "(?is)", "(?a)", "(?im)"]
WRITTEN = [  # expression, text
    (r"(\-?[0-9\.\,]+)", "12, then -3.50 and 1,000."), (r"(-?[$0-9.,]{2,})|(-?[0-9]+)", "It is $12.50, not 7"),
    (r"(?<=so it is )(.*)(?=.)", "so it is (B).\nso it is (C)."), (r"^(.*?)(?=\n|$)", "one\ntwo"),
    (r"^(.*?)\s*$", "one \n"), (r"\b(Yes|No)\b", "Yes, No_ No"), (r"a$", "a\n"), (r"a\Z", "a\n"), (r"x*", "axxb"),
    (r"\b|x", "ax x"), (r"(?P<n>a)(?P=n)", "aaaa"), (r"(a)|b", "ab"), (r"(?i)ss|ß", "ẞſſß"), (r"[^\W\d_]+", "aé1_中"),
    (r"(?m)^", "a\n"), (r"(?x) a b # all", "ab"), (r"(?<=a|bc)d", "bcd"), (r"a{,2}", "aaa"), (r"a++b", "aab"),
    (r"(?i:İ)", "iIıİ"), (r"\B", ""), (r"\Bx", "xx"), (r"[]-]", "]-"), (r"(a)?b(?(1)c|d)", "abcbd"), (r"\s", "\x1c\u2028\u180e"),
    (r"(?s).*#### ", "a\n#### 7"), (r"\\boxed\{([A-D])\}", r"\boxed{C}"), (r"(\([A-Z]\))", "(A) or (B)"),
    (r"a(?i)b", "ab"), (r"(?<=a+)b", "ab"), (r"(", ""), (r"a**", ""), (r"\q", ""), (r"[z-a]", ""), (r"(?P<1>a)", ""),
]


class Expressions:
    def __init__(self, draw):
        self.draw = draw

    def literal(self):
        character = self.draw.choice(CHARACTERS[:14] if self.draw.random() < .6 else CHARACTERS)
        return "\\" + character if character in ".$" and self.draw.random() < .5 else character

    def set(self):
        members = [self.draw.choice([self.draw.choice(CHARACTERS), self.draw.choice(RANGES), self.draw.choice(ESCAPES),
                                     self.draw.choice("]-^[{|")]) for _ in range(self.draw.randint(1, 4))]
        return "[" + ("^" if self.draw.random() < .3 else "") + "".join(members) + "]"

    def behind(self):
        parts = [self.draw.choice([self.literal(), self.draw.choice(ESCAPES), self.set(), "^", "\\b"])
                 for _ in range(self.draw.randint(1, 3))]
        return self.draw.choice(["(?<=", "(?<!"]) + "".join(parts) + self.draw.choice(["", "", "*", "|a"]) + ")"

    def group(self, depth):
        kind = self.draw.choice(["(", "(", "(?P<", "(?:", "(?=", "(?!", "(?>", "(?(", "(?i:", "(?s:", "(?m:", "(?a:", "(?q:"])
        if kind == "(?(":
            return f"(?({self.draw.randint(1, max(1, self.groups))}){self.sequence(depth)}|{self.sequence(depth)})"
        if kind in ("(", "(?P<"):
            self.groups += 1
            kind = "(" if kind == "(" else f"(?P<g{self.groups}>"
        return kind + self.alternatives(depth) + ")"

    def atom(self, depth):
        kind = self.draw.random()
        if kind < .4 or (depth <= 0 and kind >= .75):
            return self.literal()
        if kind < .65:
            return self.draw.choice([self.set(), self.draw.choice(ESCAPES), "."])
        if kind < .72:
            return self.draw.choice(["^", "$", "\\b", "\\B", "\\A", "\\Z"])
        if kind < .75:
            return f"\\{self.draw.randint(1, self.groups + 1)}" if self.groups else "."
        return self.behind() if kind < .8 else self.group(depth - 1)

    def sequence(self, depth):
        return "".join(self.atom(depth) + (self.draw.choice(REPEATS) if self.draw.random() < .35 else "")
                       for _ in range(self.draw.randint(1, 3)))

    def alternatives(self, depth):
        return "|".join(self.sequence(depth) for _ in range(self.draw.choice([1, 1, 2, 3])))

    def one(self):
        self.groups = 0
        flags = self.draw.choice(FLAGS) if self.draw.random() < .25 else ""
        return flags + self.alternatives(self.draw.randint(0, 3))

    def text(self):
        return "".join(self.draw.choice(CHARACTERS[:14] if self.draw.random() < .7 else CHARACTERS)
                       for _ in range(self.draw.randint(0, 10)))


def regex_case(draw, pattern, texts):
    case = {"pattern": pattern, "texts": texts}
    signal.setitimer(signal.ITIMER_REAL, 1)
    try:
        compiled = re.compile(pattern)
        case["found"] = [[list(m) if isinstance(m, tuple) else [m] for m in compiled.findall(text)] for text in texts]
        case["replacement"] = draw.choice(["", "X", "[\\g<0>]", "\\n\\\\"] + ["<\\1>"] * (compiled.groups > 0))
        case["count"] = draw.choice([0, 0, 1, 2])
        case["replaced"] = [compiled.sub(case["replacement"], text, count=case["count"]) for text in texts]
    except (TooLate, SystemError):
        return None
    except (re.error, OverflowError, ValueError) as error:
        case["error"] = str(error)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return case


def regex_cases(draw, count):
    expressions = Expressions(draw)
    cases = [regex_case(draw, pattern, [text]) for pattern, text in WRITTEN]
    while len(cases) < count:
        case = regex_case(draw, expressions.one(), [expressions.text() for _ in range(3)])
        if case:
            cases.append(case)
    return cases


# Filters

SENTENCES = ["The answer is {}.", "the answer is {}", "#### {}", " {} ", "So: {}\n", "({})", "I think {} or {}", "", "B",
             "('Ann', 'NOUN'), ('ran', 'VERB')", "ÉCOLE İ {}", "choose the red {}", "[{}]", "\u2003{}\u00a0", "(A)", "(C) - (B)"]
THINGS = ["A", "B", "(C)", "42", "-3.5", "1,000", "$7", "red", "Blue!", "the green one", "yes", "No", "straße", "中"]
PATTERNS = [r"#### (\-?[0-9\.\,]+)", r"(-?[$0-9.,]{2,})|(-?[0-9]+)", r"(\([A-Z]\))", r"(?i)answer is (\w+)?", r"([ABCD])",
            r"(?<=answer is )(.*)(?=.)", r"x*", r"(x*)(y*)", r"\b(\d+)\b|([A-Z]+)"]


def answer_text(draw):
    return draw.choice(SENTENCES).format(draw.choice(THINGS), draw.choice(THINGS))


def filter_step(draw):
    name = draw.choice(["regex", "regex", "regex_pos", "multi_choice_regex", "remove_whitespace", "lowercase", "uppercase",
                        "map", "take_first", "take_first_k", "majority_vote"])
    options = {}
    if name in ("regex", "multi_choice_regex"):
        if draw.random() < .9:
            options["regex_pattern"] = draw.choice(PATTERNS)
        if draw.random() < .5:
            options["group_select"] = draw.choice([0, -1, 1])
        if draw.random() < .3:
            options["fallback"] = draw.choice([" none ", ""])
    if name == "multi_choice_regex":
        options.update({key: True for key in ("ignore_case", "ignore_punctuation") if draw.random() < .5})
        if draw.random() < .3:
            options["regexes_to_ignore"] = draw.choice([["the "], [r"\s+$", "[Tt]he"]])
    if name == "map":
        options = {"mapping_dict": {"A": "first", "b": "second", "(A)": 1, "": "nothing"}}
        if draw.random() < .5:
            options["default_value"] = draw.choice(["other", -1])
    if name == "take_first_k":
        options["k"] = draw.choice([1, 2, 2, -1, 4])
    return {"function": name, **options}


class Answered:
    def __init__(self, resps, doc):
        self.resps, self.doc, self.filtered_resps = resps, doc, {}


def filter_cases(draw, count):
    cases = []
    while len(cases) < count:
        steps = [filter_step(draw) for _ in range(draw.randint(1, 3))]
        num_answers = draw.choice([1, 1, 2, 3])
        documents = [{"choices": draw.sample(THINGS, draw.randint(2, 5))} for _ in range(3)]
        answers = [[answer_text(draw) for _ in range(num_answers)] for _ in documents]
        case = {"steps": steps, "documents": documents, "answers": answers}
        components = [[step["function"], {key: step[key] for key in step if key != "function"}] for step in steps]
        try:
            answered = [Answered(resps, doc) for resps, doc in zip(answers, documents)]
            build_filter_ensemble("made", components).apply(answered)
            case["filtered"] = [plain(one.filtered_resps["made"]) for one in answered]
        except Exception as error:  # Python stops here, and so does Skein
            case["error"] = type(error).__name__
        cases.append(case)
    return cases


# Scores of a document

def task_of(documents, config):
    class Made(ConfigurableTask):
        def download(self, *_, **__):
            self.dataset = {"test": datasets.Dataset.from_list(documents)}

    return Made(config={"task": "made", "dataset_path": "made", "test_split": "test", "doc_to_text": "text",
                        "doc_to_target": "target", **config})


def scored(task, document, results):
    try:
        return {"scores": plain(task.process_results(document, results))}
    except Exception as error:
        return {"error": type(error).__name__}


def loglikelihood(draw):
    return draw.choice([draw.uniform(-30, 0), draw.uniform(-30, 0), -1.5, -3.0, -0.0, -math.inf, math.nan][: draw.choice([2, 2, 6, 7])])


def multiple_choice_task(draw):
    names = ["acc", "acc_norm", "acc_bytes", "exact_match"]
    kind = draw.choice(["index", "index", "text", "list"])
    if kind != "list":
        names += ["f1", "mcc", "brier_score"]
    has_mutual = kind != "list" and draw.random() < .3
    names = draw.sample(names, draw.randint(1, len(names))) + ["acc_mutual_info"] * has_mutual
    words = ["a", "no", "yes", "straße", "中文", "😀", "a longer choice", "é"]
    documents = []
    for _ in range(4):
        choices = draw.sample(words, draw.randint(1, 5))
        index = [0] + [draw.randrange(-len(choices), len(choices) + 2) for _ in range(2)] + [len(choices) - 1]
        target = {"index": draw.choice(index), "text": draw.choice(choices + ["none"]),
                  "list": [draw.choice(index) for _ in range(draw.randint(1, 3))]}[kind]
        documents.append({"text": "t", "choices": choices, "target": target})
    if kind == "index":
        documents[0]["target"] = 0  # the first document is tried when a task is made
    task = task_of(documents, {"output_type": "multiple_choice", "doc_to_choice": "choices",
                               "metric_list": [{"metric": name} for name in names]})
    made = []
    for document in documents:
        count = len(document["choices"]) * (2 if has_mutual else 1)
        results = [(loglikelihood(draw), draw.random() < .4) for _ in range(count)]
        made.append({"choices": document["choices"], "target": task.doc_to_target(document), "results": plain(results),
                     **scored(task, document, results)})
    return {"type": "multiple_choice", "metrics": [{"metric": name} for name in names], "several": kind == "list",
            "documents": made}


def generated_task(draw):
    options = {key: True for key in ("ignore_case", "ignore_punctuation", "ignore_numbers") if draw.random() < .4}
    if draw.random() < .4:
        options["regexes_to_ignore"] = draw.choice([[","], [r"\$", r"(?s).*#### ", r"\.$"], [r"\b(?:The |the |A )"], ["x*", r"\s"]])
    kind = draw.choice(["text", "text", "number", "list", "index", "list_answer"])
    texts = ["A", "a", "a.", "The a", "$1,000", "1000", "1000.", "x #### 7", "7", "İ", "i", "STRASSE", "", "a\u0000", "中"]
    documents = []
    for _ in range(4):
        target = {"text": draw.choice(texts), "list_answer": draw.choice(texts), "number": draw.choice([7, 1000]),
                  "list": draw.choices(texts, k=draw.randint(1, 3)), "index": draw.randrange(-2, 2)}[kind]
        documents.append({"text": "t", "target": target, "choices": draw.sample(texts[:10], 2)})
    config = {"output_type": "generate_until", "metric_list": [{"metric": "exact_match", **options}]}
    if kind == "index":
        config["doc_to_choice"] = "choices"
    task = task_of(documents, config)
    made = []
    for document in documents:
        answer = draw.choices(texts, k=draw.randint(1, 3)) if kind == "list_answer" else draw.choice(texts)
        made.append({"target": task.doc_to_target(document), "answer": answer,
                     "choices": document["choices"] if kind == "index" else None, **scored(task, document, [answer])})
    return {"type": "generate_until", "metrics": config["metric_list"], "several": kind == "list", "documents": made}


def likelihood_task(draw):
    is_rolling = draw.random() < .5
    texts = ["", " ", "a", "a b", " a  b\n", "é\u2003中 x", "\x1c", "word " * 5]
    documents = [{"text": "t", "target": draw.choice(texts)} for _ in range(4)]
    kind = "loglikelihood_rolling" if is_rolling else "loglikelihood"
    task = task_of(documents, {"output_type": kind})
    made = []
    for document in documents:
        value = draw.uniform(-50, 0)
        results = [value] if is_rolling else [(value, draw.random() < .5)]
        made.append({"target": document["target"], "results": plain(results), **scored(task, document, results)})
    return {"type": kind, "metrics": [], "several": False, "documents": made}


def document_cases(draw, count):
    makers = [multiple_choice_task, multiple_choice_task, generated_task, generated_task, likelihood_task]
    return [makers[i % len(makers)](draw) for i in range(count)]


# Aggregation

def random_scores(draw, name, count):
    if name in ("weighted_perplexity", "bits_per_byte"):
        return [(draw.uniform(-300, 0), draw.randint(1, 300)) for _ in range(count)]
    if name in ("f1", "matthews_corrcoef"):
        labels = draw.choice([[0, 1], [0, 1], [1], [0], [2], [0, 2]] + ([[0, 1, 2, 3], [-100, 0, 1, 2]] if name != "f1" else [[0, 1, 2]]))
        return [(draw.choice(labels), np.int64(draw.choice(labels))) for _ in range(count)]
    if name == "brier_score":
        classes = draw.choice([2, 3, 4, 10, 17])
        return [(draw.randrange(classes), np.array([draw.random() for _ in range(classes)])) for _ in range(count)]
    if name == "mean" and draw.random() < .6:
        return [float(draw.random() < .4) for _ in range(count)]
    if name == "nanmean":
        return [draw.choice([draw.uniform(0, 1), draw.uniform(0, 1), math.nan]) for _ in range(count)]
    return [draw.uniform(-8, 0) for _ in range(count)]


def aggregate_cases(draw, count):
    names = ["mean", "median", "perplexity", "weighted_perplexity", "bits_per_byte", "f1", "matthews_corrcoef", "brier_score",
             "nanmean", "bypass"]
    cases = []
    for i in range(count):
        name = names[i % len(names)]
        items = random_scores(draw, name, draw.choice([1, 2, 3, 7, 9, 20, 40, 70]) if i < count - 4 else 150)
        rounds = draw.choice([0, 10, 1000, 2500]) if name in ("mean", "perplexity", "median") else draw.choice([0, 20, 60])
        case = {"aggregation": name, "scores": plain(items), "rounds": rounds}
        try:
            function = get_aggregation(name)
            case["value"] = plain(function(items))
            error = judge.stderr_for_metric(function, rounds)
            case["standard_error"] = plain(error(items)) if error and len(items) > 1 else None
        except Exception as error:
            case["error"] = type(error).__name__
        cases.append(case)
    return cases


def group_cases(draw, count):
    cases = []
    for _ in range(count):
        tasks = [(draw.random(), draw.uniform(0.001, 0.1), draw.randint(2, 2000)) for _ in range(draw.randint(1, 9))]
        values, errors, sizes = map(list, zip(*tasks))
        cases.append({"tasks": tasks, "weighted": [judge.aggregate_subtask_metrics(values, sizes, True),
                                                   float(judge.pooled_sample_stderr(errors, sizes))],
                      "unweighted": [judge.aggregate_subtask_metrics(values, sizes, False),
                                     float(judge.unweighted_mean_stderr(errors))]})
    return cases


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cases", type=int, default=120)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, ring)
    draw = random.Random(given.seed)
    given.out.mkdir(parents=True, exist_ok=True)
    files = {"python_regex": regex_cases(draw, 2 * given.cases), "filters": filter_cases(draw, given.cases),
             "document_scores": document_cases(draw, given.cases // 2), "aggregate": aggregate_cases(draw, given.cases // 2),
             "groups": group_cases(draw, given.cases // 10)}
    for name, cases in files.items():
        text = json.dumps(cases, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        (given.out / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
