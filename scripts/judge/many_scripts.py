#!/usr/bin/env python3
"""Collects text in many languages, for judges of tokenizers.

    scripts/judge/many_scripts.py OUT FOLDER…

OUT gets the text of every file of UTF-8 in the FOLDERs once: plain, .gz, HTML without its tags, and
the messages of .mo files. A Debian machine has some in /usr/share/doc, /usr/share/man and
/usr/share/locale; more come in manpages-*, debian-reference-*, libreoffice-help-*, hunspell-* and
iso-codes. Documents are then passages of it, recombined (`document`), as many as one wants.
"""
import gettext
import gzip
import hashlib
import mmap
import os
import random
import re
import sys
import unicodedata

TAGS = re.compile(r"<[^<>]*>")
BETWEEN = ["", "", " ", " ", "\n", "\n\n", "\t", "  ", "\r\n", " \n", "\n \n  "]


def text_of(path):
    """The text of a file; none where it is of something else."""
    try:
        if path.endswith(".mo"):
            with open(path, "rb") as file:
                messages = gettext.GNUTranslations(file)._catalog
            return "\n".join(value for key, value in messages.items() if key and isinstance(value, str))
        data = open(path, "rb").read()
        if path.endswith(".gz"):
            data = gzip.decompress(data)
        text = data.decode()
    except (OSError, EOFError, LookupError, ValueError):
        return ""
    if "\0" in text:
        return ""
    return TAGS.sub("", text) if text.lstrip()[:1] == "<" else text


def collect(out, folders):
    seen, num_bytes = set(), 0
    for folder in folders:
        for top, names, files in os.walk(folder):
            names.sort()
            for name in sorted(files):
                data = text_of(os.path.join(top, name)).encode()
                digest = hashlib.blake2b(data, digest_size=16).digest()
                if data and digest not in seen:
                    seen.add(digest)
                    out.write(data)
                    num_bytes += len(data)
    return len(seen), num_bytes


class Texts:
    """Files of UTF-8, mapped, as if they were one."""

    def __init__(self, paths):
        self.maps, self.size = [], 0
        for path in paths:
            if os.path.getsize(path):
                with open(path, "rb") as file:
                    self.maps.append((self.size, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)))
                self.size += len(self.maps[-1][1])

    def passage(self, begin, size):
        """Whole characters of these bytes, of one file."""
        start, data = next((start, data) for start, data in reversed(self.maps) if start <= begin)
        return data[begin - start:begin - start + size].decode(errors="ignore")


def characters_by_script():
    """Letters, marks and digits, by the first word of their names: DEVANAGARI, CUNEIFORM …"""
    scripts = {}
    for code in range(0x80, 0x110000):
        character = chr(code)
        if unicodedata.category(character)[0] in "LMN":
            scripts.setdefault(unicodedata.name(character, "?").split()[0].split("-")[0], []).append(character)
    return [characters for characters in scripts.values() if len(characters) >= 10]


def made_words(rng, scripts):
    characters = rng.choice(scripts)
    if len(characters) > 100:  # neighbours, as the words of a language have
        begin = rng.randrange(len(characters) - 60)
        characters = characters[begin:begin + 60]
    words = ("".join(rng.choices(characters, k=rng.randint(1, 9))) for _ in range(rng.randint(3, 30)))
    return rng.choice(["", " ", " ", "\u3000", ", ", ". ", "\n", "-", "1"]).join(words)


def document(number, texts, scripts, size=65536):
    """Document `number` of `size` characters: passages of texts, and made words of every script."""
    rng = random.Random(number)
    parts, left = [], size
    while left > 0:
        made = rng.random() < 0.2
        part = made_words(rng, scripts) if made else texts.passage(rng.randrange(texts.size), rng.randint(20, 3000))
        parts += [part, rng.choice(BETWEEN)]
        left -= len(part)
    return "".join(parts)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    with open(sys.argv[1], "wb") as out:
        num_files, num_bytes = collect(out, sys.argv[2:])
    print(f"{sys.argv[1]}: {num_bytes / 1e6:.1f} MB of {num_files} different files")


if __name__ == "__main__":
    main()
