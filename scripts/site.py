"""Prepares the documents for MkDocs: scripts/site.sh calls it.

  scripts/site.py STAGE

Copies README.md and all pages that it leads to into the folder STAGE, laid out as in the repository, with every
file that a page links to, and writes STAGE/../mkdocs.yml. The navigation is the groups of docs/README.md. Fails
where a page of docs/ is in no group, or a link leads to no file.
"""
import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md", "docs/*.md", "examples/README.md",
         "bench/journal/*.md"]
LINK = re.compile(r"(\]\()([^) ]+)(\))")
# Anchors as GitHub makes them; a function, which only a tag of YAML can name.
SLUGIFY = "slugify"
SLUGIFY_TAG = '!!python/object/apply:pymdownx.slugs.slugify {"kwds": {"case": "lower"}}'
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`", re.S | re.M)


def stop(what):
    sys.exit(f"site: {what}")


def title_of(page):
    return re.search(r"^# (.+)$", page.read_text(), re.M)[1].replace("`", "")


def groups_of(index):
    """[(group, [page])] in the order of docs/README.md."""
    groups, seen = [], set()
    for part in re.split(r"^## ", index.read_text(), flags=re.M)[1:]:
        name, body = part.split("\n", 1)
        pages = []
        for target in re.findall(r"\]\(([^)#]+\.md)\)", body):
            page = (index.parent / target).resolve()
            if page not in seen:
                seen.add(page)
                pages.append(page)
        groups.append((name.strip(), pages))
    return groups, seen


def stage_page(page, stage):
    """Copies a page, and what it links to; a link to a folder leads to the text of its path."""
    kept = []

    def keep(match):
        kept.append(match.group(0))
        return f"\0{len(kept) - 1}\0"

    def follow(match):
        target, mark, anchor = match.group(2).partition("#")
        if re.match(r"[a-z]+:", target) or not target:
            return match.group(0)
        path = (page.parent / target).resolve()
        if not path.exists() or not path.is_relative_to(ROOT):
            stop(f"{page.relative_to(ROOT)}: the link to {target} leads nowhere")
        if path.is_dir():
            listing = stage / path.relative_to(ROOT) / "index.txt"
            listing.parent.mkdir(parents=True, exist_ok=True)
            listing.write_text("\n".join(sorted(entry.name for entry in path.iterdir())) + "\n")
            return f"{match.group(1)}{target.rstrip('/')}/index.txt{match.group(3)}"
        copy = stage / path.relative_to(ROOT)
        if path.suffix != ".md":
            copy.parent.mkdir(parents=True, exist_ok=True)
            # Browsers show .txt; they offer a source as a file to keep.
            if path.suffix in (".svg", ".png"):
                shutil.copy(path, copy)
                return match.group(0)
            copy = copy.with_name(copy.name + ".txt")
            shutil.copy(path, copy)
            return f"{match.group(1)}{target}.txt{match.group(3)}"
        return match.group(0)

    text = LINK.sub(follow, CODE.sub(keep, page.read_text()))
    while "\0" in text:
        text = re.sub("\0(\\d+)\0", lambda match: kept[int(match.group(1))], text)
    copy = stage / page.relative_to(ROOT)
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.write_text(text)


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    stage = Path(sys.argv[1])
    shutil.rmtree(stage, ignore_errors=True)
    groups, seen = groups_of(ROOT / "docs/README.md")
    pages = [page for pattern in PAGES for page in sorted(ROOT.glob(pattern))]
    for page in pages:
        if page.parent.name == "docs" and page.name != "README.md" and page.resolve() not in seen:
            stop(f"{page.relative_to(ROOT)} is in no group of docs/README.md")
        stage_page(page, stage)
    nav = [{"Skein": "README.md"}, {"All pages": "docs/README.md"}]
    for name, members in groups:
        nav.append({name: [{title_of(page): str(page.relative_to(ROOT))} for page in members
                           if page != ROOT / "README.md"]})
    rest = [page for page in pages if page.resolve() not in seen
            and page not in (ROOT / "README.md", ROOT / "docs/README.md")]
    nav.append({"More": [{title_of(page): str(page.relative_to(ROOT))} for page in rest]})
    settings = {
        "site_name": "Skein", "docs_dir": str(stage.resolve()), "use_directory_urls": False, "nav": nav,
        "theme": {"name": "material", "font": False, "features": ["navigation.sections", "navigation.top", "search.suggest",
                  "content.code.copy"],
                  "palette": [{"media": "(prefers-color-scheme: light)", "scheme": "default", "primary": "teal",
                               "toggle": {"icon": "material/weather-night", "name": "Dark"}},
                              {"media": "(prefers-color-scheme: dark)", "scheme": "slate", "primary": "teal",
                               "toggle": {"icon": "material/weather-sunny", "name": "Light"}}]},
        "plugins": ["search"],
        "markdown_extensions": ["attr_list", "md_in_html", "sane_lists", "tables", {"toc": {"permalink": True, "slugify": SLUGIFY}},
                                "pymdownx.superfences", {"pymdownx.highlight": {"use_pygments": True}}],
        "validation": {"nav": {"omitted_files": "ignore", "not_found": "warn"},
                       "links": {"not_found": "warn", "anchors": "warn", "unrecognized_links": "warn"}},
    }
    # JSON is YAML.
    text = json.dumps(settings, indent=1, ensure_ascii=False)
    (stage.parent / "mkdocs.yml").write_text(text.replace(f': "{SLUGIFY}"', f": {SLUGIFY_TAG}"))


main()
