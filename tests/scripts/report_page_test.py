#!/usr/bin/env python3
"""Opens the page of `skein report --html` in headless Chromium, and looks for faults.

  tests/scripts/report_page_test.py [BUILD_DIR]
  tests/scripts/report_page_test.py [BUILD_DIR] --screenshots DIR [--runs RUN…]     pictures instead, to look at

The runs are made up: one of 100,000 steps, one with hostile names, one that failed, one without a step. In windows of
400 and of 1,600 pixels, light and dark, the page must raise no error, make no request, be no wider than the window,
draw a curve of each run, and answer its controls. Skipped (exit code 77) where there is no Chromium, which Debian's
package chromium has.
"""
import argparse
import http.server
import json
import math
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEADLINE = 240  # seconds
HOSTILE = "</script><script>window.hacked=1<!--"
SECTIONS = ["Runs", "Curves", "Evaluations", "Evaluations over training", "Spikes", "Time and goodput",
            "Starts, stops and failures", "Memory of rank 0", "Differences of the configurations", "All settings", "Left out"]

WATCH = """<script>
window.faults = [];
addEventListener('error', event => faults.push('error: ' + event.message));
addEventListener('unhandledrejection', event => faults.push('rejected: ' + event.reason));
addEventListener('securitypolicyviolation', event => faults.push('request: ' + event.blockedURI));
for (const name of ['error', 'warn']) console[name] = (...words) => faults.push(name + ': ' + words.join(' '));
</script>"""

HARNESS = """<!doctype html><meta charset="utf-8"><style>body { margin: 0 } iframe { border: 0; display: block }</style>
<body><script>
const wait = () => new Promise(done => setTimeout(done, 250));
async function look(width) {
  const frame = document.createElement('iframe');
  frame.style = `width: ${width}px; height: 1000px`;
  frame.src = 'report.html';
  document.body.replaceChildren(frame);
  await new Promise(done => frame.onload = done);
  await wait();
  const view = frame.contentWindow, page = frame.contentDocument, set = (id, change, event) => {
    const element = page.getElementById(id);
    change(element);
    element.dispatchEvent(new view.Event(event));
  };
  const paths = () => [...page.querySelectorAll('figure:not([hidden]) path.curve')].map(path => path.getAttribute('d'));
  const broken = () => paths().filter(path => /NaN|Infinity|undefined/.test(path)).length;
  const found = {width: page.documentElement.scrollWidth, dark: view.matchMedia('(prefers-color-scheme: dark)').matches,
                 sections: [...page.querySelectorAll('h2')].map(title => title.textContent), text: page.body.textContent,
                 charts: page.querySelectorAll('figure:not([hidden]) svg').length, broken: broken()};
  const plain = paths().join();
  set('smoothing', slider => slider.value = slider.max, 'input');
  found.smoothing = paths().join() !== plain;
  set('smoothing', slider => slider.value = 0, 'input');
  for (const axis of ['tokens', 'hours']) {
    set('axis', select => select.value = axis, 'change');
    found[axis] = paths().join() !== plain;
    found.broken += broken();
  }
  set('axis', select => select.value = 'step', 'change');
  found.same = paths().join() === plain;
  set('log', box => box.checked = true, 'change');
  found.log = paths().join() !== plain;
  found.broken += broken();
  set('log', box => box.checked = false, 'change');
  const chart = page.querySelector('figure svg'), box = chart.getBoundingClientRect();
  const point = (name, share) => chart.dispatchEvent(new view.PointerEvent(name,
      {clientX: box.left + box.width * share, clientY: box.top + 60, pointerType: 'mouse', bubbles: true}));
  point('pointermove', 0.5);
  found.tip = page.getElementById('tip').textContent;
  point('pointerdown', 0.4); point('pointermove', 0.6); point('pointerup', 0.6);
  found.zoom = paths().join() !== plain && !page.getElementById('whole').hidden;
  page.getElementById('whole').click();
  found.back = paths().join() === plain;
  const first = page.querySelector('#legend input');
  first.click();
  found.hides = paths().join() !== plain;
  first.click();
  point('pointerleave', 0.5);
  found.faults = view.faults;
  found.hacked = view.hacked ?? null;
  found.requests = view.performance.getEntriesByType('resource').map(entry => entry.name);
  return found;
}
(async () => {
  const result = {};
  try { for (const width of [400, 1600]) result[width] = await look(width); }
  catch (error) { result.error = String(error.stack || error); }
  await fetch('/found', {method: 'POST', body: JSON.stringify(result)});
})();
</script>"""

SHOT = """<!doctype html><meta charset="utf-8"><style>body { margin: 0 } iframe { border: 0; display: block }</style>
<body><iframe src="report.html" style="width: WIDTHpx; height: 9000px; margin-top: -TOPpx"></iframe>"""


def write_lines(path, lines):
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def write_run(folder, steps, rate, *, end="done", why=True, evaluations=True):
    """A run as `skein train` leaves it, with a spike at three quarters."""
    (folder / "eval/model").mkdir(parents=True)
    began, spike = 1.7e9, steps * 3 // 4
    metrics = []
    for step in range(1, steps + 1):
        near = step == spike
        loss = 3 + 6 * math.exp(-step / (steps / 5)) + 0.05 * math.sin(step * rate * 1e4) + (2 if near else 0)
        metrics.append({"step": step, "loss": loss if step != 7 else None, "learning_rate": rate * min(1, step / 40),
                        "grad_norm": 40 if near else 1 + 0.01 * math.sin(step), "tokens": step * 1000 + max(0, step - steps // 2) * 1000,
                        "tokens_per_s": 5000.5,
                        "step_ms": 200, "matmul_ceiling_share": 0.4, "peak_utilization": 0.3, "time": began + step / 5,
                        "start": 1})
    write_lines(folder / "metrics.jsonl", metrics)
    events = [{"time": began, "event": "start", "number": 1, "step": 0, "version": "0.1.0", "ranks": 1, "parameters": 1000,
               "allocated_bytes": {"weights": 2_000_000, "loader": 65536}}]
    events += [{"time": began + step / 5, "event": "validation", "step": step, "loss": 3.5 + 4 * math.exp(-step / steps),
                "tokens": 100, "seconds": 1} for step in range(steps // 10, steps + 1, steps // 10)]
    if end == "done":
        events.append({"time": began + steps / 5, "event": "stop", "step": steps, "reason": "done",
                       "peak_resident_bytes": 123_000_000})
    else:
        events.append({"time": began + steps / 5, "event": "failure", "step": steps, "rank": 0, "fatal": True, "reason": end})
    write_lines(folder / "events.jsonl", events)
    (folder / "config.toml").write_text(f'[run]\ndir = "x"\nsteps = {steps}\n[optimizer]\nlearning_rate = {rate}\n')
    if evaluations:
        for step in (steps // 2, steps):
            results = {"results": {"piqa": {"alias": "piqa", "acc,none": step / steps / 2, "acc_stderr,none": 0.01}},
                       "n-shot": {"piqa": 0}, "higher_is_better": {"piqa": {"acc": True}},
                       "n-samples": {"piqa": {"original": 20, "effective": 20}}, "date": began + step,
                       "skein": {"run": {"step": step, "tokens": step * 1000}}}
            (folder / f"eval/model/results_{step}.json").write_text(json.dumps(results))
    if why:
        (folder / "why").mkdir()
        document = {"corpus": "c.arrow", "document": 3, "source": HOSTILE, "record": 4, "tokens": 50, "loss": 9.5,
                    "grad_norm": 12.0, "loss_share": 0.4, "text": f"poison {HOSTILE}"}
        (folder / "why/step.json").write_text(json.dumps({"step": spike, "batch": spike, "exact": True, "weights_step": spike - 1,
                                                          "loss": 5.0, "num_documents": 9, "documents": [document]}))


def write_runs(folder):
    hostile = folder / HOSTILE.replace("/", "\u2215")
    write_run(folder / "long", 100_000, 1e-3)
    write_run(hostile, 400, 3e-3, end=HOSTILE)
    write_run(folder / "failed", 300, 1e-2, end="a loss that is not finite", why=False, evaluations=False)
    (folder / "failed/eval/model/results_torn.json").write_text("{")
    (folder / "empty").mkdir()
    (folder / "empty/config.toml").write_text("[run]\nsteps = 5\n")
    return [folder / "long", hostile, folder / "failed", folder / "empty"]


class Handler(http.server.SimpleHTTPRequestHandler):
    def do_POST(self):
        self.server.found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def do_GET(self):
        self.server.asked.append(self.path)
        super().do_GET()

    def log_message(self, *_):
        pass


def chromium_command(chromium, profile, dark, *more):
    return [chromium, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={profile}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}", *more]


def look(chromium, folder, dark):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *ends: Handler(*ends, directory=folder))
    server.found, server.asked = queue.Queue(), []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as profile:
        browser = subprocess.Popen(
            chromium_command(chromium, profile, dark, "--remote-debugging-port=0", "--window-size=1700,1100",
                             f"http://127.0.0.1:{server.server_port}/harness.html"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return server.found.get(timeout=DEADLINE), server.asked
        except queue.Empty:
            sys.exit(f"report_page_test: {chromium} did not finish within {DEADLINE} s")
        finally:
            browser.terminate()
            browser.wait()
            server.shutdown()


def faults_of(result, asked, dark):
    if "error" in result:
        yield result["error"]
        return
    for path in set(asked) - {"/harness.html", "/report.html", "/favicon.ico"}:  # that is the harness's
        yield f"asked for {path}"
    for width in (400, 1600):
        page = result[str(width)]
        where = f"{width} pixels, {'dark' if dark else 'light'}: "
        if page["width"] > width + 1:
            yield f"{where}the page is {page['width']} pixels wide"
        for fault in page["faults"] + page["requests"]:
            yield where + fault
        for name in ("smoothing", "tokens", "hours", "log", "zoom", "same", "back", "hides"):
            if not page[name]:
                yield f"{where}{name} does not do what it should"
        if page["sections"] != SECTIONS:
            yield f"{where}sections {page['sections']}"
        if page["dark"] != dark or page["hacked"] is not None or page["broken"] or page["charts"] < 8:
            yield f"{where}dark {page['dark']}, hacked {page['hacked']}, {page['broken']} broken, {page['charts']} charts"
        for words in ("poison " + HOSTILE, HOSTILE.replace("/", "\u2215"), "results_torn.json", "no step yet",
                      "of 100,000 steps each curve has 2,000 points at most"):
            if words not in page["text"]:
                yield f"{where}the page does not say: {words}"
        if "step 50," not in page["tip"] and "long" not in page["tip"]:
            yield f"{where}under the pointer: {page['tip']!r}"


def screenshot(chromium, folder, out, width, dark, height, top):
    (folder / "shot.html").write_text(SHOT.replace("WIDTH", str(width)).replace("TOP", str(top)))
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(chromium_command(chromium, profile, dark, f"--window-size={width},{height}",
                                        "--allow-file-access-from-files", "--virtual-time-budget=5000",
                                        f"--screenshot={out}", (folder / "shot.html").as_uri()),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=DEADLINE)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build", nargs="?", default="build")
    parser.add_argument("--screenshots", type=Path)
    parser.add_argument("--runs", nargs="*", help="show these runs in the screenshots")
    parser.add_argument("--top", type=int, default=0, help="first line of pixels")
    parser.add_argument("--height", type=int, default=3200, help="of the pictures")
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        print("report_page_test: skipped: no Chromium; Debian's package chromium has it")
        sys.exit(77)
    skein = ROOT / options.build / "skein"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        served = folder / "served"
        served.mkdir()
        runs = options.runs or write_runs(folder)
        page = served / "report.html"
        done = subprocess.run([skein, "report", *runs, "--html", page], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"report_page_test: {done.stderr}")
        if options.screenshots:
            options.screenshots.mkdir(parents=True, exist_ok=True)
            for width in (400, 1600):
                for dark in (False, True):
                    out = options.screenshots / f"report-{width}-{'dark' if dark else 'light'}.png"
                    screenshot(chromium, served, out.resolve(), width, dark, options.height, options.top)
            return
        page.write_text(page.read_text().replace("<head>", "<head>" + WATCH, 1))
        (served / "harness.html").write_text(HARNESS)
        wrong = [fault for dark in (False, True) for fault in faults_of(*look(chromium, served, dark), dark)]
        for line in wrong:
            print(f"report_page_test: {line}", file=sys.stderr)
        print(f"report_page_test: {page.stat().st_size / 1e6:.1f} MB, 4 windows, {len(wrong)} faults")
        sys.exit(1 if wrong else 0)


main()
