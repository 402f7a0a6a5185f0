#!/usr/bin/env python3
"""Writes skein/prepare/clean/words/character_classes.inc: what characters are to the rules of cleaning.

    scripts/goldens/character_classes.py > skein/prepare/clean/words/character_classes.inc

Needs the PyPI packages datatrove==0.10.1, spacy and what it asks for. Every class is found by asking
the library (or Python itself) about every character.
"""
import re
import sys
import unicodedata
from importlib.metadata import version

import spacy
from datatrove.utils import text as datatrove_text
from spacy.lang import char_classes
from spacy.pipeline import Sentencizer

TOKENIZER = spacy.blank("en").tokenizer
SENTENCE_ENDS = set(Sentencizer.default_punct_chars)
CURRENCIES = set(re.sub(r"\\", "", "".join(c for c in char_classes.LIST_CURRENCY if len(c) < 3)))


def in_brackets(characters):
    return re.compile(f"[{characters}]").match


# What may stand before a period that is a token, as spaCy's rule spells it.
BEFORE_PERIOD = in_brackets(f"0-9{char_classes.ALPHA_LOWER}%²\\-\\+{char_classes.PUNCT}"
                            f"(?:{char_classes.CONCAT_QUOTES})")
CLASSES = {
    "kSpace": str.isspace,
    "kLetter": in_brackets(char_classes.ALPHA),
    "kLower": in_brackets(char_classes.ALPHA_LOWER),
    "kUpper": in_brackets(char_classes.ALPHA_UPPER),
    "kPrefix": lambda c: c != "+" and TOKENIZER.find_prefix(c) == 1,
    "kSuffix": lambda c: TOKENIZER.find_suffix(c) == 1,
    "kIcon": in_brackets(char_classes.CONCAT_ICONS),
    "kQuote": in_brackets(char_classes.CONCAT_QUOTES),
    "kBeforePeriod": BEFORE_PERIOD,
    "kCurrency": lambda c: c in CURRENCIES and c not in "USCA",
    "kWord": re.compile(r"\w").match,
    "kDecimal": re.compile(r"\d").match,
    "kAlphabetic": str.isalpha,
    "kSymbol": lambda c: c in datatrove_text.PUNCTUATION_SET,
    "kTerminal": lambda c: c in datatrove_text.TERMINAL_PUNCTUATION,
    "kSentenceEnd": lambda c: c in SENTENCE_ENDS,
    "kPunctuation": lambda c: unicodedata.category(c).startswith("P"),
}

print("// Made by scripts/goldens/character_classes.py with datatrove "
      f"{version('datatrove')}, spaCy {version('spacy')},")
print(f"// Python {sys.version.split()[0]} (Unicode {unicodedata.unidata_version}).")
names = list(CLASSES)
ranges = []
for code in range(0x110000):
    if 0xD800 <= code < 0xE000:
        continue
    bits = sum(1 << i for i, name in enumerate(names) if CLASSES[name](chr(code)))
    if bits and ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == bits:
        ranges[-1][1] = code
    elif bits:
        ranges.append([code, code, bits])
print("// Bits, from the lowest: " + ", ".join(names[:9]) + ",")
print("// " + ", ".join(names[9:]) + ".")
line = ""
for first, last, bits in ranges:
    entry = f"{{0x{first:x}, 0x{last:x}, 0x{bits:x}}},"
    if len(line) + len(entry) > 98:
        print(line)
        line = ""
    line += ("" if not line else " ") + entry
print(line)
