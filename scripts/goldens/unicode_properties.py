#!/usr/bin/env python3
"""Writes skein/bpe/unicode/categories.inc and sets.inc: what `tokenizers` knows of characters.

    scripts/goldens/unicode_properties.py

The general category is that of its expressions (\\p{Lu}); a set is one of

  a script    \\p{Han} of its expressions
  Word        where \\w of its expressions is not \\p{L}, \\p{M}, \\p{Nd} or \\p{Pc}, or the other way round
  Numeric     likewise what its pre-tokenizer Digits takes for one, and \\p{N}
  Punct       likewise what its pre-tokenizer Punctuation takes for one, and \\p{P}
  AddedWord   likewise what is of a word for added tokens with `single_word`, and \\w
  Normal      what its normalizers decompose, compose or move, and characters between such that no
              version of Unicode can: the rest they leave where it is

Needs the PyPI package tokenizers.
"""
import pathlib
import unicodedata

import tokenizers
from tokenizers import Regex, normalizers, pre_tokenizers

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent / "skein/bpe/unicode"
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
CATEGORIES = "Lu Ll Lt Lm Lo Mn Mc Me Nd Nl No Pc Pd Ps Pe Pi Pf Po Sm Sc Sk So Zs Zl Zp Cc Cf Co Cn".split()
SCRIPTS = """Arabic Armenian Bengali Bopomofo Cherokee Common Cyrillic Devanagari Ethiopic Georgian Greek
Gujarati Gurmukhi Han Hangul Hebrew Hiragana Inherited Kannada Katakana Khmer Lao Latin Malayalam Mongolian
Myanmar Oriya Sinhala Syriac Tamil Telugu Thaana Thai Tibetan Yi""".split()


def chunks(size):
    return (CODES[begin:begin + size] for begin in range(0, len(CODES), size))


def members(pattern):
    split = pre_tokenizers.Split(Regex(pattern), "removed")
    found = set()
    for chunk in chunks(4096):
        kept = set()
        for _, (first, last) in split.pre_tokenize_str("".join(map(chr, chunk))):
            kept.update(range(first, last))
        found.update(c for i, c in enumerate(chunk) if i not in kept)
    return found


def isolated(split):
    """What it cuts out of between two letters."""
    return {ord(text) for chunk in chunks(2048)
            for text, (first, last) in split.pre_tokenize_str("x" + "".join(chr(c) + "x" for c in chunk))
            if last - first == 1 and text != "x"}


def added_word():
    split = pre_tokenizers.Whitespace()  # \w+|[^\w\s]+ of the same engine
    return {ord(text[1]) for chunk in chunks(2048)
            for text, _ in split.pre_tokenize_str(" ".join("x" + chr(c) + "x" for c in chunk)) if len(text) == 3}


def normal():
    nfd, nfkd = normalizers.NFD(), normalizers.NFKD()
    found = set(range(0x1100, 0x1113)) | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for code in CODES:
        c = chr(code)
        if nfkd.normalize_str(c) != c:
            found.add(code)
            found.update(map(ord, nfd.normalize_str(c)))
            found.update(map(ord, nfkd.normalize_str(c)))
        if unicodedata.combining(c) and (code == 0x345 or nfd.normalize_str("a\u0345" + c) == "a" + c + "\u0345"):
            found.add(code)
    found = sorted(code for code in found if code >= 0x80)
    for before, after in zip(found, found[1:]):  # what had a character in 3.2 is as it is for ever
        if all(unicodedata.ucd_3_2_0.category(chr(c)) != "Cn" for c in range(before + 1, after)):
            found += range(before + 1, after)
    return set(found)


def ranges(codes):
    found = []
    for code in sorted(codes):
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def write(name, entries):
    with open(ROOT / name, "w") as out:
        out.write(f"// Made by scripts/goldens/unicode_properties.py with tokenizers {tokenizers.__version__}.\n")
        line = ""
        for entry in entries:
            if len(line) + len(entry) > 97:
                out.write(line + "\n")
                line = ""
            line += ("" if not line else " ") + entry + ","
        out.write(line + "\n")


def main():
    category = {code: name for name in CATEGORIES for code in members(rf"\p{{{name}}}")}
    runs, before = [], None
    for code in range(0x110000):
        name = category.get(code, "Cs")
        if name != before:
            runs.append(f"{{0x{code:x}, k{name}}}")
        before = name
    write("categories.inc", runs)
    sets = {name: members(rf"\p{{{name}}}") for name in SCRIPTS}
    word, of = members(r"\w"), lambda *names: {code for code, name in category.items() if name.startswith(names)}
    sets |= {"Word": word ^ of("L", "M", "Nd", "Pc"), "AddedWord": added_word() ^ word,
             "Numeric": isolated(pre_tokenizers.Digits(individual_digits=True)) ^ of("N"),
             "Punct": isolated(pre_tokenizers.Punctuation("isolated")) ^ of("P"), "Normal": normal()}
    write("sets.inc", [f'{{"{name}", 0x{first:x}, 0x{last:x}}}' for name, codes in sets.items()
                               for first, last in ranges(codes)])


main()
