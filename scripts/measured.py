#!/usr/bin/env python3
"""Writes the figures of bench/results/rows/ into the tables of docs/measured.md and docs/gpu.md.

  scripts/measured.py             writes the tables
  scripts/measured.py --check     fails where a page says something else than the files; writes nothing

A file is one row:

  group      the table that the row belongs to: <!-- measured: begin GROUP --> in a page
  order      where in the table: rows are sorted by it
  what       what was measured, in one line; the other program's figure may stand in it
  figure     the figure, as text: "4,126", or "1.02, 0.99" for two of a kind
  unit       "tokens/s", "%", "MB"; "" for a plain number
  cpu        the processor or GPU; "" where it does not matter
  command    what prints it
  date       when it was measured; where that is not known, when it was written down
  commit     the one that wrote it down
  story      the page of bench/journal/ that tells more, without .md
  results    a file of bench/results/ with all runs; may be left out
"""
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "bench/results/rows"
PAGES = ("docs/measured.md", "docs/gpu.md")
KEYS = {"group", "order", "what", "figure", "unit", "cpu", "command", "date", "commit", "story"}
BLOCK = re.compile(r"(<!-- measured: begin (\w+) -->\n)(.*?)(<!-- measured: end -->)", re.S)
LONGEST = 140  # characters of a cell: what is longer belongs into the journal


def stop(what):
    sys.exit(f"measured: {what}")


def read_rows():
    groups = {}
    for path in sorted(ROWS.glob("*.json")):
        name = path.relative_to(ROOT)
        try:
            row = json.loads(path.read_text())
        except ValueError as error:
            stop(f"{name}: not JSON: {error}")
        if missing := KEYS - row.keys():
            stop(f"{name}: no {', '.join(sorted(missing))}")
        if unknown := row.keys() - KEYS - {"results"}:
            stop(f"{name}: {', '.join(sorted(unknown))}: expected {', '.join(sorted(KEYS))}, results")
        for key, value in row.items():
            if key != "order" and (not isinstance(value, str) or "|" in value or len(value) > LONGEST):
                stop(f"{name}: {key}: expected a text of at most {LONGEST} characters without a bar")
        if not (ROOT / f"bench/journal/{row['story']}.md").exists():
            stop(f"{name}: story: there is no bench/journal/{row['story']}.md")
        if "results" in row and not (ROOT / "bench/results" / row["results"]).exists():
            stop(f"{name}: results: there is no bench/results/{row['results']}")
        groups.setdefault(row["group"], []).append(row)
    for rows in groups.values():
        rows.sort(key=lambda row: row["order"])
    return groups


def table(rows):
    text = "| what | figure | on | printed by | when |\n|---|---|---|---|---|\n"
    for row in rows:
        figure = f"**{row['figure']}** {row['unit']}".strip()
        date = row["date"]
        if "results" in row:
            date = f"[{date}](../bench/results/{row['results']})"
        text += f"| {row['what']} | {figure} | {row['cpu'] or 'any'} | `{row['command']}` | {date} |\n"
    return text


def main():
    if sys.argv[1:] not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    groups, shown, stale = read_rows(), set(), []
    for name in PAGES:
        page = ROOT / name
        old = page.read_text()
        if old.count("<!-- measured: begin") != len(BLOCK.findall(old)):
            stop(f"{name}: a table has no name or no end")

        def replace(match):
            if match.group(2) not in groups:
                stop(f"{name}: no row of bench/results/rows/ has the group {match.group(2)}")
            shown.add(match.group(2))
            return match.group(1) + "\n" + table(groups[match.group(2)]) + "\n" + match.group(4)

        new = BLOCK.sub(replace, old)
        if new != old and sys.argv[1:]:
            stale.append(name)
        elif new != old:
            page.write_text(new)
    if hidden := groups.keys() - shown:
        stop(f"no page has a table of the group {', '.join(sorted(hidden))}")
    if stale:
        stop(f"{', '.join(stale)}: out of date: run scripts/measured.py")


main()
