#!/usr/bin/env python3
"""Compares what cleaning decides with datatrove's filters, on the same documents.

    scripts/judge/clean.py [FILE…] [--count 100000] [--seed 1] [--processes 2] [--bench build/clean_bench]
    scripts/judge/clean.py FILE… --language-model lid.176.bin [--count 10000]

Needs the PyPI packages datatrove==0.10.1, spacy, regex, orjson, tokenizers and xxhash==3.5.0. Documents
are made (scripts/judge/clean_documents.py), and parts of the FILEs, changed at random. Each is judged
by every filter alone and by all in FineWeb's order: the rule that drops it, the text that C4 leaves,
and its words. Exit code 1 and the first differences where any differ.

With a model of fastText languages are judged, and nothing else: the probability of every language,
and what stays at FineWeb's threshold and others. Needs the package fasttext-numpy2-wheel, too; FILEs
are text in many languages, such as many_scripts.py collects, of which documents are passages.
"""
import argparse
import collections
import multiprocessing
import os
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from clean_documents import documents  # noqa: E402

FILTERS = ["gopher_repetition", "gopher_quality", "c4", "fineweb"]
# What is asked of both: some filters, and C4 as its paper has it.
QUESTIONS = {name: [f"{other}=off" for other in FILTERS if other != name] for name in FILTERS}
QUESTIONS["c4 with terminal punctuation"] = QUESTIONS["c4"] + ["no_terminal_punc=on"]
QUESTIONS["all"] = []


def write_documents(path, texts):
    with open(path, "wb") as out:
        for text in texts:
            data = text.encode()
            out.write(struct.pack("<I", len(data)) + data)


def read_entries(path):
    data, at = open(path, "rb").read(), 0
    while at < len(data):
        size, = struct.unpack_from("<I", data, at)
        yield data[at + 4:at + 4 + size].decode()
        at += 4 + size


def ours(bench, texts):
    with tempfile.TemporaryDirectory() as folder:
        write_documents(folder + "/in", texts)
        answers = {}
        for question, settings in QUESTIONS.items():
            options = [option for setting in settings for option in ("--set", setting)]
            subprocess.run([bench, folder + "/in", "--judge", folder + "/out", *options], check=True)
            entries = list(read_entries(folder + "/out"))
            answers[question] = list(zip(entries[::2], entries[1::2]))
        subprocess.run([bench, folder + "/in", "--words", folder + "/out"], check=True)
        answers["words"] = [entry.split("\n")[:-1] for entry in read_entries(folder + "/out")]
        return answers


def theirs(texts):
    from datatrove.data import Document
    from datatrove.pipeline.filters import C4QualityFilter, FineWebQualityFilter, GopherQualityFilter, GopherRepetitionFilter
    from datatrove.utils.text import split_into_words
    filters = {"gopher_repetition": GopherRepetitionFilter(), "gopher_quality": GopherQualityFilter(),
               "c4": C4QualityFilter(filter_no_terminal_punct=False), "fineweb": FineWebQualityFilter(),
               "c4 with terminal punctuation": C4QualityFilter()}

    def ask(names, text):
        document = Document(text=text, id="")
        for name in names:
            result = filters[name].filter(document)
            if result is not True:
                reason = result[1]
                return ("blank" if name == "fineweb" and reason == "empty" else reason), ""
        return "", document.text

    answers = collections.defaultdict(list)
    for text in texts:
        answers["words"].append(split_into_words(text))
        for name in filters:
            answers[name].append(ask([name], text))
        answers["all"].append(ask(FILTERS, text))
    return answers


def judge(task):
    bench, count, seed, files = task
    import spacy
    exceptions = [text for text in spacy.blank("en").tokenizer.rules if text.strip()]
    # spaCy's tokenizer fails on this word, with which datatrove has its own way.
    texts = [text for text in documents(count, seed, files, exceptions) if text and "IS_ALPHA" not in text]
    expected, found = theirs(texts), ours(bench, texts)
    decisions, differences = collections.Counter(), []
    for question, answers in expected.items():
        for text, theirs_, ours_ in zip(texts, answers, found[question], strict=True):
            if question != "words":
                decisions[question, theirs_[0] or "kept"] += 1
            if theirs_ != ours_:
                differences.append((question, theirs_, ours_, text))
    return len(texts), decisions, differences


WANTED = [(["en"], 0.65), (["en"], 0.5), (["en"], 0.9), (["de", "fr"], 0.65), (["ru"], 0.65), (["ja", "ko", "zh"], 0.3)]


def judge_languages(task):
    bench, count, seed, files, model_file = task
    import random
    from datatrove.data import Document
    from datatrove.pipeline.filters import LanguageFilter
    from fasttext.FastText import _FastText
    from many_scripts import Texts
    rng, passages = random.Random(seed), Texts(files)
    texts = list(documents(count // 10, seed, [], ["don't"]))
    texts += [passages.passage(rng.randrange(passages.size), rng.choice([30, 300, 3000])) for _ in range(count - len(texts))]
    texts = [text for text in texts if text]
    judge = LanguageFilter()
    judge.model._model = _FastText(model_file)
    decisions, differences = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        write_documents(folder + "/in", texts)

        def ask(*options):
            subprocess.run([bench, folder + "/in", "--language-model", model_file, *options], check=True)
            return list(read_entries(folder + "/out"))
        scores = [dict(line.rsplit(" ", 1) for line in entry.splitlines()) for entry in ask("--languages", folder + "/out")]
        for text, found in zip(texts, scores, strict=True):
            found = {language: float(score) for language, score in found.items()}
            (best, _), expected = judge.model.predict(Document(text=text, id=""))
            decisions["most probable", best] += 1
            if found != expected or next(iter(found)) != best:
                differences.append(("scores", expected, found, text))
        for languages, threshold in WANTED:
            judge.model.languages = judge.languages = languages
            judge.language_threshold = threshold
            question = f"{' '.join(languages)} > {threshold}"
            wanted = [option for language in languages for option in ("--language", language)]
            answers = ask("--judge", folder + "/out", "--set", f"language={threshold}", *wanted)[::2]
            for text, found in zip(texts, answers, strict=True):
                expected = "" if judge.filter(Document(text=text, id="")) else "language"
                decisions[question, expected or "kept"] += 1
                if found != expected:
                    differences.append((question, expected, found, text))
    return len(texts), decisions, differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--count", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--bench", default="build/clean_bench")
    parser.add_argument("--language-model")
    options = parser.parse_args()
    chunk = 500
    tasks = [(options.bench, min(chunk, options.count - begin), options.seed * 1000003 + begin, options.files)
             for begin in range(0, options.count, chunk)]
    if options.language_model:
        tasks = [(*task, options.language_model) for task in tasks]
    num_documents, decisions, differences = 0, collections.Counter(), []
    with multiprocessing.Pool(options.processes) as pool:
        for count, more, different in pool.imap_unordered(judge_languages if options.language_model else judge, tasks):
            num_documents += count
            decisions.update(more)
            differences += different
    for (question, rule), count in sorted(decisions.items()):
        print(f"{question:30} {rule:30} {count:8}")
    for question, expected, found, text in differences[:10]:
        if question == "words":
            i = next((i for i, (a, b) in enumerate(zip(expected, found)) if a != b), min(len(expected), len(found)))
            expected, found = expected[i:i + 4], found[i:i + 4]
        print(f"{question}: datatrove {expected!r:.200}, skein {found!r:.200}\n  of {text!r:.300}")
    print(f"{num_documents} documents, {len(differences)} differences")
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
