#!/usr/bin/env python3
"""Counts the house idioms in README.md and docs/: docs/style.md says why, and what to write instead.

  scripts/check_prose.py [--figures] [PAGE…]

  --figures   prints for each page: words, idioms, idioms per 1,000 words, words between off and on
  PAGE…       these pages alone; without them README.md, CONTRIBUTING.md and docs/*.md below the working folder

Counts running text: paragraphs, lists and the cells of tables. Does not count headings, code blocks, text in
backquotes, targets of links, blocks that a program writes (transcript, reference, words), and text between
<!-- prose: off --> and <!-- prose: on -->: messages that scripts match, and wrong examples.

Exit code 0: at most 0.2 idioms per 1,000 words over all pages; 1: more, each as "page:line: idiom: …".
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
NOT_TEXT = re.compile(r"<!--.*?-->|`[^`]*`|(?<=\])\([^)]*\)|https?://\S+", re.S)


def blank(found):
    """As many lines as before, so that line numbers stay."""
    return "\n" * found.group(0).count("\n") or " - "


def words(text):
    return len(re.findall(r"[A-Za-z][\w'’-]*", text))


def check(path):
    text = FENCED.sub(blank, GENERATED.sub(blank, path.read_text()))
    kept = sum(words(found) for found in KEPT.findall(text))
    text = NOT_TEXT.sub(blank, TITLES.sub(blank, KEPT.sub(blank, text)))
    found = []
    for name, pattern in PATTERNS.items():
        for match in pattern.finditer(text):
            shown = match.group(0).lstrip(" \n.;:?!|(*-")
            found.append((text.count("\n", 0, match.end() - len(shown)) + 1, name, " ".join(shown.split())))
    found.sort()
    return words(text), found, kept


def main():
    arguments = sys.argv[1:]
    figures = "--figures" in arguments
    pages = [Path(page) for page in arguments if page != "--figures"]
    pages = pages or [page for page in (Path("README.md"), Path("CONTRIBUTING.md"),
                                        *sorted(Path("docs").glob("*.md"))) if page.exists()]
    num_words, num_found, lines = 0, 0, []
    for page in pages:
        of_page, found, kept = check(page)
        num_words, num_found = num_words + of_page, num_found + len(found)
        lines += [f"{page}:{line}: {name}: \"{text}\"" for line, name, text in found]
        if figures:
            print(f"{page}: {of_page} words, {len(found)} idioms, {1000 * len(found) / max(of_page, 1):.2f} "
                  f"per 1,000 words, {kept} words not counted")
    rate = 1000 * num_found / max(num_words, 1)
    if figures:
        print(f"all: {num_words} words, {num_found} idioms, {rate:.2f} per 1,000 words")
    if rate > MOST_PER_1000:
        print("\n".join(lines))
        sys.exit(f"check_prose: {rate:.2f} idioms per 1,000 words, at most {MOST_PER_1000}: see docs/style.md")


if __name__ == "__main__":
    main()
