#!/usr/bin/env python3
"""Makes data sets in the columns of LAMBADA, wikitext, BIG-Bench Hard, GSM8K and SQuAD-like suites that no package has.

    scripts/judge/made_data.py DIR       needs pip install datasets; scripts/judge.sh evaluation does so

The texts are pages of this checkout and made-up questions: what is compared are two programs on the same documents, and
the scores mean nothing. Splits are folders of save_to_disk, named as lm-evaluation-harness's task files name them.
"""

import random
import re
import sys
from pathlib import Path

import datasets

ROOT = Path(__file__).resolve().parents[2]
DRAW = random.Random(48)

BBH = """boolean_expressions causal_judgement date_understanding disambiguation_qa dyck_languages formal_fallacies
geometric_shapes hyperbaton logical_deduction_five_objects logical_deduction_seven_objects
logical_deduction_three_objects movie_recommendation multistep_arithmetic_two navigate object_counting
penguins_in_a_table reasoning_about_colored_objects ruin_names salient_translation_error_detection snarks
sports_understanding temporal_sequences tracking_shuffled_objects_five_objects
tracking_shuffled_objects_seven_objects tracking_shuffled_objects_three_objects web_of_lies word_sorting""".split()


def pages():
    return [page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))]


def sentences():
    found = []
    for page in pages():
        plain = re.sub(r"```.*?```|\|.*|[`*#\[\]()<>]", " ", page, flags=re.S)
        found += [" ".join(one.split()) for one in re.split(r"(?<=[.:;])\s", plain)]
    return [one for one in found if 8 <= len(one.split()) <= 60]


def lambada(count):
    return [{"text": text.rstrip(".:;")} for text in DRAW.sample(sentences(), count)]


# With the marks that wikitext has and its detokenizer removes.
def wikitext(count):
    made = []
    for page in DRAW.sample(pages(), count):
        words = page[:4000].replace(",", " , ").replace(".", " . ").replace("'s", " 's").replace("-", " @-@ ")
        title = page.splitlines()[0].strip("# ")
        made.append({"page": f" = {title} = \n \n {words} \n 1 @,@ 000 @.@ 5 ( units ) \n"})
    return made


def bbh(count):
    made = []
    for _ in range(count):
        a, b, c = (DRAW.randint(-9, 9) for _ in range(3))
        words = DRAW.sample(DRAW.choice(sentences()).split(), 5)
        made.append({"input": f"(({a} * {b}) + {c}) = \nOptions:\n(A) {a * b + c}\n(B) {' '.join(words)}",
                     "target": DRAW.choice(["(A)", "(B)", "True", "No", str(a * b + c)])})
    return made


def gsm8k(count):
    made = []
    for _ in range(count):
        a, b = DRAW.randint(2, 40), DRAW.randint(2, 1200)
        made.append({"question": f"A box has {a} rows of {b} pens. How many pens are in it?",
                     "answer": f"There are {a} x {b} = <<{a}*{b}={a * b}>>{a * b} pens.\n#### {a * b:,}"})
    return made


def save(folder, name, rows):
    datasets.Dataset.from_list(rows).save_to_disk(str(folder / name))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    target = Path(sys.argv[1])
    save(target / "EleutherAI/lambada_openai/default", "test", lambada(200))
    for split, count in (("train", 2), ("validation", 2), ("test", 12)):
        save(target / "EleutherAI/wikitext_document_level/wikitext-2-raw-v1", split, wikitext(count))
    for name in BBH:
        save(target / "SaylorTwift/bbh" / name, "test", bbh(24))
    for split in ("train", "test"):
        save(target / "openai/gsm8k/main", split, gsm8k(40))


if __name__ == "__main__":
    main()
