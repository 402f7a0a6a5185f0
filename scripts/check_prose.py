#!/usr/bin/env python3
"""Counts the house idioms in pages and messages: docs/style.md says why, and what to write instead.

  scripts/check_prose.py [--figures] [FILE…]

  --figures   prints for each file with words: words, idioms, idioms per 1,000 words, words between off and on
  FILE…       these files alone; without them README.md, CONTRIBUTING.md, docs/*.md, and the sources of skein/
              without tests, all below the working folder

Of a page it counts running text: paragraphs, lists and the cells of tables. It does not count headings, code
blocks, text in backquotes, targets of links, blocks that a program writes (transcript, reference, words), and
text between <!-- prose: off --> and <!-- prose: on -->: messages that scripts match, and wrong examples.
Of a source it counts string literals of more than one word: messages, help texts, descriptions of keys.

Exit code 0: at most 0.2 idioms per 1,000 words, over all pages and over all sources; 1: more of either, each
as "file:line: idiom: …".
"""
import re
import sys
from pathlib import Path

MOST_PER_1000 = 0.2

# "what" without a noun at the head of a clause: "What does not fit is refused", "the bytes of what is kept".
# A question is none of these; nor is an object, "it says what was found".
HEAD = r"(?:\A|\n\n(?:[*-] )?|[.;:?!|(*] |(?:of|from|for|with|by) )"
SUBJECT = HEAD + r"what (?:is|are|was|were|has|have|had|does|did|can|cannot|could|may|must|should|would|will|" \
                 r"fits|lies|stands|comes|came|needs|takes|remains|differs|changes|changed|fails|failed)"

# Patterns of the text; a blank stands for one blank or one line break.
IDIOMS = {
    "told": r"told",
    "go on": r"(?:go|goes|going|went|gone) on(?! (?:a|an|the|each|every|to)\b)",
    "anew": r"anew",
    "of before": r"of (?:before|then|today)",
    "it is said": r"(?:that|this|it|and|which) (?:is|are|was|were) said",
    "one that": r"(?:one|ones|that) (?:that|which|who)",
    "of which": r"of which",
    "who wants": r"(?:of|from|by|for|with|to|as) who(?:ever)?",
    "what is": SUBJECT + r"(?![^.;:|]*\?)",
    "goes before": r"(?:go|goes|went) before",
}
PATTERNS = {name: re.compile(rf"(?:(?<![\w-])|(?=\W))(?:{idiom})(?![\w-])".replace(" ", r"(?:[ ]|[ ]*\n(?!\n)[ >*]*)"), re.I)
            for name, idiom in IDIOMS.items()}
GENERATED = re.compile(r"<!-- (transcript|reference|words)(?:: begin.*?-->).*?<!-- \1: end -->", re.S)
FENCED = re.compile(r"^ *```.*?^ *```", re.S | re.M)
KEPT = re.compile(r"<!-- prose: off -->.*?<!-- prose: on -->", re.S)
TITLES = re.compile(r"^#.*$|^\|.*(?=\n\|[ :|-]*$)", re.M)
LITERAL = re.compile(r'//[^\n]*|/\*.*?\*/|\'(?:[^\'\\\n]|\\.)+\'|#include[^\n]*'
                     r'|R"(?P<mark>\w*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:[^"\\\n]|\\.)*)"', re.S)
ESCAPED = {r"\n": "\n", r"\t": " ", r'\"': '"'}
NOT_TEXT = re.compile(r"<!--.*?-->|`[^`]*`|(?<=\])\([^)]*\)|https?://\S+", re.S)


def blank(found):
    """As many lines as before, so that line numbers stay."""
    return "\n" * found.group(0).count("\n") or " - "


def words(text):
    return len(re.findall(r"[A-Za-z][\w'’-]*", text))


def idioms(text):
    """Where each begins, its name and its words."""
    for name, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            shown = match.group(0).lstrip(" \n.;:?!|(*-")
            yield match.end() - len(shown), name, " ".join(shown.split())


def check_page(path):
    text = FENCED.sub(blank, GENERATED.sub(blank, path.read_text()))
    kept = sum(words(found) for found in KEPT.findall(text))
    text = NOT_TEXT.sub(blank, TITLES.sub(blank, KEPT.sub(blank, text)))
    found = sorted((text.count("\n", 0, at) + 1, name, shown) for at, name, shown in idioms(text))
    return words(text), found, kept


def messages(source):
    """The string literals with the lines on which they begin; neighbours are one, as for the compiler."""
    joined, line, end = "", 0, None
    for match in LITERAL.finditer(source):
        text = match["raw"] if match["raw"] is not None else match["text"]
        if text is None:
            continue
        if end is None or source[end:match.start()].strip():
            yield line, joined
            joined, line = "", source.count("\n", 0, match.start()) + 1
        joined, end = joined + text, match.end()
    yield line, joined


def check_source(path):
    num_words, found = 0, []
    for line, message in messages(path.read_text()):
        text = NOT_TEXT.sub(blank, re.sub(r'\\[nt"]', lambda escape: ESCAPED[escape.group(0)], message))
        if len(text.split()) > 1:
            num_words += words(text)
            found += [(line, name, shown) for _, name, shown in idioms(text)]
    return num_words, sorted(found), 0


def pages_and_sources(arguments):
    files = [Path(file) for file in arguments]
    files = files or [file for file in (Path("README.md"), Path("CONTRIBUTING.md"), *sorted(Path("docs").glob("*.md")),
                                        *sorted(Path("skein").rglob("*"))) if file.is_file()]
    pages = [file for file in files if file.suffix == ".md"]
    sources = [file for file in files if file.suffix in (".cc", ".h", ".cu", ".def")
               and not file.stem.endswith(("_test", "_fuzz")) and "testdata" not in file.parts]
    return pages, sources


def check_all(kind, files, check, figures):
    """Whether the files have few enough idioms."""
    num_words, num_found, lines = 0, 0, []
    for file in files:
        of_file, found, kept = check(file)
        num_words, num_found = num_words + of_file, num_found + len(found)
        lines += [f"{file}:{line}: {name}: \"{text}\"" for line, name, text in found]
        if figures and of_file > 0:
            print(f"{file}: {of_file} words, {len(found)} idioms, {1000 * len(found) / of_file:.2f} "
                  f"per 1,000 words, {kept} words not counted")
    rate = 1000 * num_found / max(num_words, 1)
    if figures:
        print(f"all {kind}: {num_words} words, {num_found} idioms, {rate:.2f} per 1,000 words")
    if rate <= MOST_PER_1000:
        return True
    print("\n".join(lines))
    print(f"check_prose: {rate:.2f} idioms per 1,000 words of {kind}, at most {MOST_PER_1000}: see docs/style.md",
          file=sys.stderr)
    return False


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--figures"]
    figures = "--figures" in sys.argv[1:]
    pages, sources = pages_and_sources(arguments)
    good = [check_all("pages", pages, check_page, figures), check_all("sources", sources, check_source, figures)]
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
