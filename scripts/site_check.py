#!/usr/bin/env python3
"""Opens every page of build/site in headless Chromium, 400 pixels wide, in light and in dark mode.

  scripts/site_check.py [CHROMIUM]       after scripts/site.sh; CHROMIUM: the program (chromium)

Fails where a page is wider than the window, a picture does not load, a link to a page of the site is broken, or a
picture has text below 5 pixels at that width or no background of its own, which dark mode needs. Debian's
package chromium has the program. Exit code 2: there is none.
"""
import http.server
import json
import queue
import re
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "build/site"
WIDTH, SMALLEST = 400, 5
DEADLINE = 180  # seconds
HARNESS_NAME = "site_check.html"

HARNESS = """<!doctype html><meta charset="utf-8"><body><script>
const pages = PAGES, found = [];
async function look(page) {
  const frame = document.createElement('iframe');
  frame.style = 'width: WIDTHpx; height: 900px; border: 0';
  frame.src = page;
  document.body.append(frame);
  await new Promise(done => frame.onload = done);
  const view = frame.contentDocument, root = view.documentElement;
  for (const picture of view.images) {
    if (!picture.complete) await new Promise(done => picture.onload = picture.onerror = done);
    if (!picture.naturalWidth) found.push(page + ': the picture ' + picture.getAttribute('src') + ' does not load');
  }
  if (root.scrollWidth > WIDTH + 1) found.push(page + ': ' + root.scrollWidth + ' pixels wide');
  const links = new Set([...view.links].filter(link => link.host == location.host).map(link => link.pathname));
  frame.remove();
  return links;
}
(async () => {
  const links = new Map();
  for (const page of pages) for (const link of await look(page)) links.set(link, page);
  for (const [link, page] of links)
    if (!(await fetch(link, {method: 'HEAD'})).ok) found.push(page + ': the link to ' + link + ' is broken');
  await fetch('/found', {method: 'POST', body: JSON.stringify({pages: pages.length, links: links.size, found})});
})();
</script>"""


def stop(what, code=1):
    print(f"site_check: {what}", file=sys.stderr)
    sys.exit(code)


def wrong_pictures():
    for picture in sorted((ROOT / "docs/pictures").glob("*.svg")):
        text = picture.read_text()
        width = float(re.search(r'viewBox="0 0 ([\d.]+)', text)[1])
        smallest = min(float(size) for size in re.findall(r'font-size: ([\d.]+)px', text)) * WIDTH / width
        if smallest < SMALLEST:
            yield f"{picture.name}: text of {smallest:.1f} pixels at {WIDTH}, expected {SMALLEST} or more"
        background = re.search(r"<rect[^>]*>", text)[0]
        if float(re.search(r'width="([\d.]+)"', background)[1]) < width - 2 or 'fill="#' not in background:
            yield f"{picture.name}: no background of its own: expected a first rect that fills it"


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves the site, and takes what the page of HARNESS posts at its end."""

    def do_POST(self):
        self.server.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


def look(chromium, dark):
    pages = ["/" + str(page.relative_to(SITE)) for page in sorted(SITE.rglob("*.html")) if page.name not in ("404.html", HARNESS_NAME)]
    harness = SITE / HARNESS_NAME
    harness.write_text(HARNESS.replace("PAGES", json.dumps(pages)).replace("WIDTH", str(WIDTH)))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *ends: Handler(*ends, directory=SITE))
    server.found = queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        browser = subprocess.Popen(
            [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
             "--remote-debugging-port=0",  # else it ends once the page has loaded
             f"--blink-settings=preferredColorScheme={0 if dark else 1}",
             f"http://127.0.0.1:{server.server_port}/{harness.name}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return server.found.get(timeout=DEADLINE)
        except queue.Empty:
            stop(f"{chromium} did not come to the end of {len(pages)} pages within {DEADLINE} s")
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()
            harness.unlink()


def main():
    chromium = shutil.which(sys.argv[1] if len(sys.argv) > 1 else "chromium")
    if len(sys.argv) > 2 or chromium is None:
        stop("no Chromium: name the program, or install the package chromium", 2)
    if not (SITE / "index.html").exists():
        stop("there is no build/site: run scripts/site.sh first", 2)
    wrong = list(wrong_pictures())
    for dark in (False, True):
        result = look(chromium, dark)
        wrong += result["found"]
        print(f"{'dark' if dark else 'light'}: {result['pages']} pages and {result['links']} links, "
              f"{len(result['found'])} faults")
    for line in wrong:
        print(f"site_check: {line}", file=sys.stderr)
    sys.exit(1 if wrong else 0)


main()
