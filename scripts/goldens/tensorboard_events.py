#!/usr/bin/env python3
"""Writes skein/record/files/testdata/tensorboard.tfevents with TensorBoard's own writer and protobuf messages.
With a folder as argument, prints instead what TensorBoard reads from it. No test runs this."""
import pathlib
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import event_pb2
from tensorboard.summary.writer import record_writer

SCALARS = [("loss", 10.825), ("grad_norm", 0.0), ("model_flops_utilization", float("inf"))]


def events():
    yield event_pb2.Event(wall_time=1763636883.25, file_version="brain.Event:2")
    start = event_pb2.SessionLog(status=event_pb2.SessionLog.START)
    yield event_pb2.Event(wall_time=1763636883.25, step=301, session_log=start)
    for step in (0, 1, 127, 128, 1 << 40):
        event = event_pb2.Event(wall_time=1763636884.5, step=step)
        for tag, value in SCALARS:
            event.summary.value.add(tag=tag, simple_value=value)
        yield event


def read(folder):
    accumulator = event_accumulator.EventAccumulator(folder, size_guidance={"scalars": 0})
    accumulator.Reload()
    for tag in sorted(accumulator.Tags()["scalars"]):
        rows = accumulator.Scalars(tag)
        print(tag, len(rows), [(row.step, row.value) for row in rows[:3] + rows[-1:]])


if len(sys.argv) > 1:
    read(sys.argv[1])
else:
    path = pathlib.Path(__file__).parents[2] / "skein/record/files/testdata/tensorboard.tfevents"
    with open(path, "wb") as file:
        writer = record_writer.RecordWriter(file)
        for event in events():
            writer.write(event.SerializeToString())
        writer.flush()
