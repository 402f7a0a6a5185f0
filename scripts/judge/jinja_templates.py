#!/usr/bin/env python3
"""Compares skein/jinja with jinja2 in transformers' environment, on random expressions and templates.

    scripts/judge/jinja_templates.py [--count 20000] [--seed 1] [--program build/skein_jinja_test]
    scripts/judge/jinja_templates.py --templates FILE_OR_FOLDER… [--messages FILE.json]

The first form makes cases, has transformers render each, and runs the program's test
JinjaGoldens.RendersAsTheFileSays on them (SKEIN_JINJA_CASES). The second renders chat templates that you
name (.jinja files, or tokenizer_config.json) with conversations of several kinds.
Needs transformers and jinja2; no test runs this.
"""
import argparse
import copy
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from transformers.utils.chat_template_utils import _compile_jinja_template, _render_with_assistant_indices

VARIABLES = {
    "s": "Hello, World", "t": "  a b\tc\n d  ", "u": "naïve ÄÖ 漢字 🙂 ǅ ß", "e": "", "q": "it's \"q\" \\ \n\x01\u200b",
    "x": "<b>&amp;</b>", "n": 7, "m": -3, "z": 0, "f": 2.5, "g": -0.1, "h": 1e20, "b": True, "c": False, "o": None,
    "l": [3, 1, 2], "w": ["b", "A", "c", "a"], "v": [1, "a", None, 2.5, [1], {"k": 1}],
    "d": {"b": 1, "A": 2, "a": [1, 2], "items": 3}, "k": {}, "y": [],
    "r": [{"role": "user", "n": 2, "tag": "x"}, {"role": "assistant", "n": 1}, {"role": "tool", "n": 3, "tag": None}],
}
NAMES = list(VARIABLES) + ["undefined_name"]
METHODS = ["upper()", "lower()", "strip()", "lstrip()", "rstrip('d ')", "split()", "split(' ')", "split(',', 1)",
           "rsplit(None, 1)", "rsplit('l', 1)", "splitlines()", "title()", "capitalize()", "swapcase()",
           "replace('l', 'LL')", "replace('', '-', 2)", "startswith('He')", "endswith(('d', ' '))", "find('o')", "rfind('o')",
           "count('l')", "partition(', ')", "rpartition('o')", "join(['a', 'b'])", "center(20, '*')", "ljust(14)",
           "rjust(14, '.')", "zfill(15)", "isdigit()", "isalpha()", "isspace()", "islower()", "isupper()", "istitle()",
           "removeprefix('Hel')", "removesuffix('ld')", "index('o')", "items()", "keys()", "values()", "get('a')",
           "get('zz', 5)", "copy()", "append(1)", "update({})", "isalnum()", "isascii()"]
FILTERS = ["upper", "lower", "title", "capitalize", "trim", "trim('d ')", "length", "count", "first", "last", "list", "join",
           "join('-')", "join(', ', attribute='role')", "string", "int", "int(5)", "int(0, 16)", "float", "float(1.5)", "round",
           "round(1)", "round(1, 'floor')", "round(0, 'ceil')", "abs", "sort", "sort(reverse=true)", "sort(attribute='n')",
           "sort(case_sensitive=true)", "unique", "reverse", "sum", "sum(attribute='n')", "sum(start=10)", "min", "max",
           "tojson", "tojson(indent=2)", "tojson(ensure_ascii=true)", "tojson(sort_keys=true)", "tojson(separators=(',', ':'))",
           "default('D')", "default('D', true)", "d(1)", "replace('l', 'L')", "replace('l', 'L', 1)", "indent", "indent(2, true)",
           "indent('> ', blank=true)", "items", "dictsort", "dictsort(by='value')", "dictsort(true, reverse=true)", "map('upper')",
           "map(attribute='role')", "map(attribute='tag', default='none')", "map('string')", "select", "select('odd')", "reject('none')",
           "selectattr('role', 'equalto', 'user')", "rejectattr('tag')", "selectattr('tag', 'defined')", "batch(2)", "batch(2, 'x')",
           "slice(2)", "escape", "e", "safe", "forceescape", "center(20)", "wordcount", "attr('n')", "format(1)"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping", "sequence",
         "iterable", "odd", "even", "divisibleby 3", "divisibleby(2)", "in [1, 2, 7]", "in 'Hello'", "eq 7", "ne 7", "lt 3", "ge(2)",
         "equalto 's'", "lower", "upper", "callable", "escaped"]
LITERALS = ["0", "1", "2", "-1", "10", "1.5", "0.1", "1e3", "'a'", '"b"', "'l'", "''", "'\\n'", "'%s|%5.2f|%d'", "'%s'", "[]", "[1, 2]",
            "(1, 2)", "(1,)", "()", "{}", "{'a': 1}", "true", "false", "none", "True", "None", "1_000", "0x1f"]
BINARY = ["+", "-", "*", "/", "//", "%", "**", "~", "and", "or", "==", "!=", "<", "<=", ">", ">=", "in", "not in"]


class Maker:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def expression(self, depth):
        pick, r = self.random.choice, self.random.random()
        if depth <= 0 or r < 0.15:
            return pick(NAMES) if self.random.random() < 0.7 else pick(LITERALS)
        inner = lambda: self.expression(depth - 1)
        if r < 0.30:
            return f"{inner()} {pick(BINARY)} {inner()}"
        if r < 0.36:
            return f"({inner()})"
        if r < 0.52:
            return f"{pick(NAMES)}.{pick(METHODS)}"
        if r < 0.72:
            return f"{inner()}|{pick(FILTERS)}"
        if r < 0.78:
            return f"{inner()} is {pick(['', 'not '])}{pick(TESTS)}"
        if r < 0.82:
            return f"{inner()} if {inner()} else {inner()}"
        if r < 0.90:
            bounds = lambda: pick(["", "0", "1", "-1", "2", "-2", "3", "n"])
            index = pick(["0", "-1", "1", "'a'", "'role'", "n", bounds() + ":" + bounds(), "::-1", "::2", "1::2"])
            return f"{pick(NAMES)}[{index}]"
        if r < 0.93:
            return f"{pick(NAMES)}.{pick(['role', 'a', 'items', 'n', 'upper'])}"
        if r < 0.96:
            return f"{pick(['not ', '-', '+'])}{inner()}"
        return pick([f"[{inner()}, {inner()}]", f"({inner()},)", f"{{'k': {inner()}}}", f"range({inner()})", f"dict(a={inner()})"])

    def block(self, depth):
        pick = self.random.choice
        dash = lambda: pick(["", "", "-", "+"])
        tag = lambda text: f"{{%{dash()} {text} {pick(['', '', '-', '+'])}%}}"
        text = pick(["", " ", "\n", "  \n", "a", "\n  b", " c \n", "{ ", "\t"])
        if depth <= 0:
            return text + f"{{{{{pick(['', '', '-'])} {self.expression(1)} {pick(['', '', '-'])}}}}}" + text
        body = lambda: "".join(self.block(depth - 1) for _ in range(self.random.randint(1, 2)))
        kinds = [
            lambda: tag(f"if {self.expression(2)}") + body() + tag(f"elif {self.expression(1)}") + body() + tag("else") + body() + tag("endif"),
            lambda: tag(f"for i in {pick(['l', 'w', 'd', 'r', 's', 'y', 'range(3)', 'undefined_name', 'd.items()', 'v'])}"
                        f"{pick(['', '', ' if i', ' if loop is defined', ' if i != 1'])}") + body() +
            pick(["", "{{ loop.index }}", "{{ loop.first ~ loop.last }}", "{{ loop.length - loop.revindex0 }}", "{{ loop.previtem }}|{{ loop.nextitem }}",
                  "{{ loop.cycle(1, 2) }}", tag("if loop.index > 1") + tag(pick(["break", "continue"])) + tag("endif")]) + body() +
            pick(["", tag("else") + body()]) + tag("endfor"),
            lambda: tag(f"set {pick(['a', 'a', 's', 'n'])} = {self.expression(2)}") + body() + "{{ a }}",
            lambda: tag("set a") + body() + tag("endset") + "[{{ a }}]",
            lambda: tag("set p, p2 = 1, n") + "{{ p }}{{ p2 }}" + body(),
            lambda: tag("set ns = namespace(a=1, b=n)") + tag("for i in l") + tag("set ns.a = ns.a + i") + tag("set a = i") + tag("endfor") + "{{ ns.a }}{{ a }}",
            lambda: tag("macro f(i, j=2)") + body() + "{{ i }}{{ j }}" + tag("endmacro") + pick(["{{ f(1) }}", "{{ f(n, j=3) }}", "{{ f() }}", "{{ f(1, 2, 3) }}"]),
            lambda: tag("call(i) wrap(1)") + "{{ i }}" + body() + tag("endcall"),
            lambda: tag("with a = n, p = s") + body() + "{{ a }}" + tag("endwith") + "{{ p }}",
            lambda: tag("filter upper") + body() + tag("endfilter"),
            lambda: "{#" + dash() + " no {{ 1 }} " + pick(["", "-", "+"]) + "#}" + text,
            lambda: "{% raw %}{{ 1 }}" + text + "{% endraw %}" + text,
            lambda: tag("generation") + body() + tag("endgeneration"),
        ]
        return text + pick(kinds)() + text

    def template(self):
        wrap = "{% macro wrap(a) %}<{{ caller(a) }}>{% endmacro %}"
        return wrap + "".join(self.block(self.random.randint(0, 2)) for _ in range(self.random.randint(1, 3)))


def rendered(source, variables):
    """{"text", "generations"} as transformers renders it, or {"error"}."""
    try:
        template = _compile_jinja_template(source)
        values = copy.deepcopy(variables)  # the filter indent lengthens a list that it is given
        text, spans = _render_with_assistant_indices(template, values.pop("messages", None), values.pop("tools", None),
                                                     values.pop("documents", None), values.pop("add_generation_prompt", None),
                                                     **values)
        text.encode()
    except Exception as error:  # whatever Python raises, an error is what is expected
        return {"error": f"{type(error).__name__}: {error}"}
    bytes_of = lambda at: len(text[:at].encode())
    return {"text": text, "generations": [[bytes_of(a), bytes_of(b)] for a, b in spans]}


ADDRESS = re.compile(r"<[^<>]* at 0x[0-9a-f]+>", re.I)


def random_cases(count, seed):
    maker = Maker(seed)
    for i in range(count):
        source = "{{ " + maker.expression(3) + " }}" if i % 2 == 0 else maker.template()
        expected = rendered(source, VARIABLES)
        if "text" in expected and ADDRESS.search(expected["text"]):
            continue
        if "text" in expected and len(expected["text"]) > 100_000:
            continue
        yield {"template": source, "variables": VARIABLES, "expected": expected}


def conversations():
    user = lambda text: {"role": "user", "content": text}
    assistant = lambda text, **more: {"role": "assistant", "content": text, **more}
    call = {"type": "function", "id": "call12345", "function": {"name": "add", "arguments": {"a": 1, "b": [1.5, "ü"]}}}
    tool = {"type": "function", "function": {"name": "add", "description": "Adds \"two\" <numbers>.", "parameters": {
        "type": "object", "properties": {"a": {"type": "number", "description": "one"}, "b": {"type": "array", "items": {"type": "string"}}},
        "required": ["a"]}}}
    chats = [
        [user("hi")],
        [user("  hi\n"), assistant(" hello ")],
        [{"role": "system", "content": "Be brief."}, user("1+1?"), assistant("2"), user("ü 漢字"), assistant("<think>\nhm\n</think>\n\n🙂")],
        [user("add"), assistant("", tool_calls=[call]), {"role": "tool", "name": "add", "content": "2.5", "tool_call_id": "call12345"}, assistant("done")],
        [user("why"), assistant("because", reasoning_content="think so")],
        [assistant("first")],
        [user("a"), user("b")],
    ]
    for messages in chats:
        for tools in (None, [tool]):
            for prompt in (False, True):
                yield {"messages": messages, "tools": tools, "documents": None, "add_generation_prompt": prompt,
                       "bos_token": "<s>", "eos_token": "</s>", "date_string": "26 Jul 2024"}


def sources_of(path):
    path = pathlib.Path(path)
    if path.is_dir():
        for inner in sorted(path.rglob("*.jinja")) + sorted(path.rglob("tokenizer_config.json")):
            yield from sources_of(inner)
    elif path.suffix == ".json":
        template = json.loads(path.read_text()).get("chat_template")
        for one in template if isinstance(template, list) else [{"template": template}] if template else []:
            yield str(path), one["template"]
    else:
        yield str(path), path.read_text()


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--count", type=int, default=20_000)
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--program", default="build/skein_jinja_test")
    arguments.add_argument("--templates", nargs="+")
    arguments.add_argument("--write", help="write the cases to this file, and run nothing")
    options = arguments.parse_args()
    if options.templates:
        cases = [{"template": source, "variables": variables, "expected": rendered(source, variables)}
                 for path in options.templates for _, source in sources_of(path) for variables in conversations()]
    else:
        cases = list(random_cases(options.count, options.seed))
    lines = "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)
    if options.write:
        pathlib.Path(options.write).write_text(lines)
        return 0
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        file.write(lines)
        file.flush()
        failed = sum("error" in case["expected"] for case in cases)
        print(f"{len(cases)} cases, {failed} of which are errors", file=sys.stderr)
        return subprocess.run([options.program, "--gtest_filter=JinjaGoldens.RendersAsTheFileSays"],
                              env={**os.environ, "SKEIN_JINJA_CASES": file.name}).returncode


if __name__ == "__main__":
    sys.exit(main())
