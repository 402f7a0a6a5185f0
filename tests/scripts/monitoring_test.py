#!/usr/bin/env python3
"""Alert rules and dashboard against what a run really serves, judged by promtool and Prometheus.

  monitoring_test.py SKEIN

Trains with [log] prometheus, kills a worker, and checks that the metrics outlive it; that promtool
finds nothing wrong with them, nor with configs/monitoring/; that rules and dashboard name no metric
that the run does not serve; that a Prometheus which scrapes the run answers each of them; and that
each alert has a test and a row in docs/reliability.md.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

sys.path[:0] = [os.path.join(os.path.dirname(__file__), "..", folder) for folder in ("", "survival")]
import services  # noqa: E402
import soak  # noqa: E402

FOLDER = "configs/monitoring"


tool = services.program


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=100) as answer:
        return answer.read().decode()


def wait_for(what, condition, seconds=600):
    deadline = time.time() + seconds
    while time.time() < deadline:
        try:
            value = condition()
            if value:
                return value
        except (urllib.error.URLError, OSError):
            pass
        time.sleep(0.05)
    sys.exit(f"monitoring_test: {what}: not within {seconds} s")


def check(*command, stdin=None):
    done = subprocess.run(command, input=stdin, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"monitoring_test: {' '.join(command)}:\n{done.stdout}{done.stderr}")


def dashboard_expressions():
    with open(os.path.join(FOLDER, "dashboard.json")) as file:
        dashboard = json.load(file)
    expressions = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    assert len(expressions) > 20, expressions
    return [expression.replace("$run", ".+") for expression in expressions]


def alert_rules():
    with open(os.path.join(FOLDER, "alerts.yml")) as file:
        return file.read()


def names_in(text):
    return set(re.findall(r"\bskein_[a-z0-9_]+", text))


def check_files(served):
    promtool = tool("promtool")
    check(promtool, "check", "rules", os.path.join(FOLDER, "alerts.yml"))
    check(promtool, "test", "rules", os.path.join(FOLDER, "alerts_test.yml"))
    expressions = dashboard_expressions()
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as rules:
        rules.write("groups:\n- name: dashboard\n  rules:\n")
        for i, expression in enumerate(expressions):
            rules.write(f"  - record: panel_{i}\n    expr: {json.dumps(expression)}\n")
        rules.flush()
        check(promtool, "check", "rules", rules.name)
    for where, text in (("alerts.yml", alert_rules()), ("dashboard.json", " ".join(expressions))):
        unknown = names_in(text) - served
        if unknown:
            sys.exit(f"monitoring_test: {where} names {sorted(unknown)}, which no run serves")
    with open(os.path.join(FOLDER, "alerts_test.yml")) as file:
        tests = file.read()
    with open("docs/reliability.md") as file:
        page = file.read()
    for alert in re.findall(r"- alert: (\w+)", alert_rules()):
        if not re.search(rf"alertname: {alert}\s+exp_alerts:\s+- exp_labels", tests):
            sys.exit(f"monitoring_test: no test of alerts_test.yml lets {alert} fire")
        if f"`{alert}`" not in page:
            sys.exit(f"monitoring_test: docs/reliability.md does not say what to do at {alert}")


def kill_worker(parent):
    with open(f"/proc/{parent}/task/{parent}/children") as children:
        for pid in children.read().split():
            with open(f"/proc/{pid}/environ") as environment:
                if "\0SKEIN_RANK=1\0" in "\0" + environment.read():
                    os.kill(int(pid), signal.SIGKILL)
                    return
    sys.exit("monitoring_test: found no worker of rank 1")


def sample(text, name):
    found = re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)
    return float(found.group(1)) if found else None


# What the run serves, before and after a worker was replaced, without a gap between.
def check_run(run, url):
    wait_for("the tenth step", lambda: (sample(get(url), "skein_step") or 0) >= 10)
    kill_worker(run.pid)
    killed = 'skein_restarts_total{cause="killed"}'
    deadline = time.time() + 600
    while sample(get(url), killed) != 1:  # any scrape that fails ends the test
        if time.time() > deadline:
            sys.exit(f"monitoring_test: {killed} is not 1:\n{get(url)}")
        time.sleep(0.02)
    wait_for("a step after it", lambda: sample(get(url), "skein_step_age_seconds") < 1)
    text = wait_for("a recovery", lambda: get(url) if sample(
        get(url), 'skein_time_seconds{part="recovering"}') > 0 else None)
    assert sample(text, "skein_generation") == 2, text
    check(tool("promtool"), "check", "metrics", stdin=text)
    return text


# A real Prometheus scrapes the run, and evaluates every rule and every panel.
def check_prometheus(folder, run_address):
    port = free_port()
    shutil.copy(os.path.join(FOLDER, "alerts.yml"), folder)
    with open(os.path.join(folder, "prometheus.yml"), "w") as config:
        config.write("global: {scrape_interval: 1s, evaluation_interval: 1s}\n"
                     "rule_files: [alerts.yml]\n"
                     "scrape_configs:\n- job_name: skein\n"
                     f"  static_configs: [{{targets: ['{run_address}']}}]\n")
    server = subprocess.Popen(
        [tool("prometheus"), f"--config.file={folder}/prometheus.yml",
         f"--storage.tsdb.path={folder}/tsdb", f"--web.listen-address=127.0.0.1:{port}"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def ask(path):
        return json.loads(get(f"http://127.0.0.1:{port}/api/v1/{path}"))["data"]

    try:
        wait_for("a scrape", lambda: ask("query?query=skein_step")["result"])
        for expression in dashboard_expressions():
            wait_for(f"values of {expression}",
                     lambda: ask("query?query=" + urllib.parse.quote(expression))["result"], 20)
        rules = wait_for("every rule", lambda: [
            rule for group in ask("rules")["groups"] for rule in group["rules"]
            if all(one["health"] != "unknown" for one in group["rules"])])
        for rule in rules:
            if rule["health"] != "ok":
                sys.exit(f"monitoring_test: {rule['name']}: {rule['lastError']}")
    finally:
        server.terminate()
        server.wait()


def main():
    skein = os.path.abspath(sys.argv[1])
    if not tool("promtool") or not tool("prometheus"):
        print("monitoring_test: no promtool: scripts/test_tools.sh unpacks it")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        address = f"127.0.0.1:{free_port()}"
        config = os.path.join(folder, "run.toml")
        with open(config, "w") as out:
            text = soak.CONFIG.format(dir=os.path.join(folder, "run"), steps=10**6, workers=2, nodes="1",
                                      ranks=2, sequences=4, rendezvous="", data=soak.make_data(skein, folder))
            out.write(text + f'prometheus = "{address}"\n')
        with open(os.path.join(folder, "out"), "w") as out:
            run = subprocess.Popen([skein, "train", config], stdout=out, stderr=out)
        try:
            text = check_run(run, f"http://{address}/metrics")
            check_files(names_in("\n".join(re.findall(r"^# TYPE (\S+)", text, re.MULTILINE))))
            check_prometheus(folder, address)
        finally:
            run.terminate()
            code = run.wait()
        if code != 75:
            with open(os.path.join(folder, "out")) as out:
                sys.exit(f"monitoring_test: the run ended with {code}, expected 75:\n{out.read()[-4000:]}")
    print("monitoring_test: rules, panels and metrics agree")
    return 0


if __name__ == "__main__":
    sys.exit(main())
