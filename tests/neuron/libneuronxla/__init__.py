"""Stands for Neuron's package in tests: what its plugin calls, which notes the call."""
import os


def neuronx_cc(size):
    with open(os.environ["FAKE_NEURON_REPORT"], "a") as report:
        report.write(f"Python compiles {size} bytes\n")
