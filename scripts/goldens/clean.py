#!/usr/bin/env python3
"""Writes skein/prepare/clean/testdata/: documents, and what datatrove, spaCy and ftfy make of them.

    scripts/goldens/clean.py

Needs what scripts/judge/clean.py needs, and ftfy. The documents are made; of every rule of every filter
the shortest ones are kept.
"""
import collections
import json
import os
import random
import sys

import spacy
import xxhash
from datatrove.pipeline.formatters import PIIFormatter
from datatrove.utils.text import split_into_sentences, split_into_words
from ftfy import TextFixerConfig, fix_text

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "judge"))
from clean import QUESTIONS, theirs  # noqa: E402
from clean_documents import ODD, documents, fragments  # noqa: E402

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "skein", "prepare", "clean", "testdata")
EXCEPTIONS = [text for text in spacy.blank("en").tokenizer.rules if text.strip()]

EMAILS = """joe@example.com <a.b+c@d.co.uk>, x@y z@.com q@w.e- a..b@c.de .a@b.cd a.@b.cd é@b.cd éa@b.cd éa.b@c.de !a@b.cd _a@b.cd
a@b.c. a@b-.c a@b.c-.d a@b.-c a@[1.2.3.4] a@b@c.de a@b.cd@e.fg mailto:a@b.cd. a'b@c.de a@b.cdé a@b..c a@1.2 a@-b.c @b.cd a@"""
ADDRESSES = """8.8.8.8 10.0.0.1 1.2.3.4.5 256.1.1.1 1234.5.6.7 1.2.3.256 1.2.3.300 01.2.3.4 1.02.3.4 0.0.0.0 127.0.0.1 169.254.1.1
172.16.0.1 172.32.0.1 192.168.1.1 192.169.1.1 100.64.0.1 100.128.0.1 198.18.0.1 198.20.0.1 203.0.113.9 224.0.0.1 240.0.0.1
255.255.255.255 192.0.2.7 198.51.100.3 8.8.8 8.8.8.8. v8.8.8.8x 8.8.8.8.8.8.8.8 ١.2.3.4"""
DAMAGED = ["â€œquotedâ€\x9d", "itâ€™s", "dash â€” and â€“", "cafÃ© naÃ¯ve", "Â£5 Â©", "ðŸ˜€ smile", "ï»¿mark", "â‚¬5",
           "l\u00e0\u00a0\u00bb", "gro\u00df\u201c", "S\u00c3O", "\u00e2 \u20ac", "plain", "caf\u00e9", "e\u0301 a\u030a",
           "\r\na\rb\u2028d\u2029e", "a\x00b\x08c\x0bd\x0ce\x1bf\x7fg", "\ufeffa\u206ab\ufff9c\ufffcd", "\u212b \ufb01 \u00bd"]


def write(name, value):
    os.makedirs(FOLDER, exist_ok=True)
    with open(os.path.join(FOLDER, name), "w", encoding="utf-8") as out:
        out.write("[\n" + ",\n".join(json.dumps(entry, ensure_ascii=True) for entry in value) + "\n]\n")


def words():
    rng = random.Random(11)
    texts = [fragments(rng, EXCEPTIONS)[:240] for _ in range(120)]
    texts += [" ".join(EXCEPTIONS[i:i + 60]) for i in range(0, len(EXCEPTIONS), 60)]
    texts += [" ".join(ODD), "".join(ODD), "Hello.  World", "A. \t B! C?", "a.\u00a0b", "(a.) b", "...", "a...b", "x?!\" y"]
    for text in texts:
        line = " ".join(text.splitlines()).strip()
        if line:
            yield {"text": line, "words": split_into_words(line), "sentences": len(split_into_sentences(line))}


def decisions():
    texts = [text for text in documents(12000, 3, [], EXCEPTIONS) if text]
    answers = theirs(texts)
    chosen = set()
    for question in QUESTIONS:
        by_rule = collections.defaultdict(list)
        for i, (rule, _) in enumerate(answers[question]):
            by_rule[rule].append(i)
        for indices in by_rule.values():
            chosen.update(sorted(indices, key=lambda i: len(texts[i]))[:4])
    for i in sorted(chosen):
        yield {"text": texts[i],
               "rules": {question: answers[question][i][0] for question in QUESTIONS},
               "left": {question: xxhash.xxh3_128_hexdigest(answers[question][i][1]) for question in QUESTIONS
                        if not answers[question][i][0]}}


def personal_data():
    formatter = PIIFormatter(email_replacement="email@example.com", ip_replacement="192.0.2.1")
    rng = random.Random(5)
    pieces = EMAILS.split() + ADDRESSES.split()
    texts = pieces + [EMAILS, ADDRESSES]
    texts += ["".join(rng.choice(pieces + [" ", ", ", ".", "@", "x"]) for _ in range(6)) for _ in range(200)]
    for text in texts:
        yield {"text": text, "replaced": formatter.format(text)}


def repairs():
    config = TextFixerConfig(unescape_html=False, remove_terminal_escapes=False, fix_latin_ligatures=False,
                             fix_character_width=False, uncurl_quotes=False, restore_byte_a0=False,
                             replace_lossy_sequences=False, decode_inconsistent_utf8=False,
                             fix_c1_controls=False, explain=False)
    for text in DAMAGED:
        yield {"text": text, "repaired": fix_text(text, config)}


write("words.json", words())
write("decisions.json", decisions())
write("personal_data.json", personal_data())
write("repairs.json", repairs())
