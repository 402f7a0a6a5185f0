#!/usr/bin/env python3
"""Compares the losses of a run with those that are expected.

  examples/compare.py RUN EXPECTED.json             exit code 1 if one differs by more than its "tolerance"
  examples/compare.py --write RUN EXPECTED.json     writes the losses of RUN there

RUN is the folder of a run. EXPECTED.json has "tolerance", "losses" of training by step, and "validation" by step
and set, as metrics.jsonl and events.jsonl of the run have them.
"""
import json
import pathlib
import sys

NUM_STEPS = 4  # of training losses that --write keeps, at even distances


def read_lines(path):
    if not path.exists():
        sys.exit(f"compare: no {path}: expected the folder of a run that has trained")
    return [json.loads(line) for line in path.read_text().splitlines()]


def losses_of(run):
    """Those of training by step, and of validation by 'step set'; the last line of a step counts."""
    training = {line["step"]: line["loss"] for line in read_lines(run / "metrics.jsonl")}
    validation = {f"{event['step']} {event.get('set', 'text')}": event["loss"]
                  for event in read_lines(run / "events.jsonl") if event["event"] == "validation"}
    return training, validation


def write(run, path):
    training, validation = losses_of(run)
    last = max(training)
    steps = sorted({max(1, round(last * part / (NUM_STEPS - 1))) for part in range(NUM_STEPS)})
    path.write_text(json.dumps({"tolerance": 0.005, "losses": {str(step): training[step] for step in steps},
                                "validation": validation}, indent=2) + "\n")


def compare(run, path):
    expected = json.loads(path.read_text())
    training, validation = losses_of(run)
    found = {f"step {step}": loss for step, loss in training.items()}
    found |= {f"validation at step {key}": loss for key, loss in validation.items()}
    wanted = {f"step {step}": loss for step, loss in expected["losses"].items()}
    wanted |= {f"validation at step {key}": loss for key, loss in expected["validation"].items()}
    name, tolerance, largest, wrong = path.parent.name, expected["tolerance"], 0, 0
    for key, loss in wanted.items():
        difference = abs(found[key] - loss) if key in found else float("inf")
        largest = max(largest, difference)
        if not difference <= tolerance:  # also where the loss is not a number
            wrong += 1
            print(f"examples/{name}: {key}: loss {found.get(key, 'missing')}, expected {loss} within {tolerance}",
                  file=sys.stderr)
    if wrong:
        sys.exit(f"examples/{name}: {wrong} of {len(wanted)} losses are not as expected ({path})")
    print(f"examples/{name}: {len(wanted)} losses are as expected: the largest difference is {largest:.2g}, at most "
          f"{tolerance:g} is allowed")


def main():
    arguments = sys.argv[1:]
    is_write = arguments[:1] == ["--write"]
    paths = [pathlib.Path(argument) for argument in arguments[is_write:]]
    if len(paths) != 2:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    (write if is_write else compare)(*paths)


main()
