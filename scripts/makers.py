"""What transcripts.py and pictures.py share: functions that make parts of pages, by name, and what
they run."""
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SKEIN = str(ROOT / "build/skein")

MAKERS = {}
REPEATABLE = set()  # those that make the same at every run


def maker(repeatable):
    def register(function):
        MAKERS[function.__name__] = function
        if repeatable:
            REPEATABLE.add(function.__name__)
        return function
    return register


def run(*arguments, cwd=ROOT, **environment):
    """What a command prints, both streams as they come; it must succeed."""
    done = subprocess.run(arguments, cwd=cwd, text=True, env={**os.environ, **environment},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        sys.exit(f"{Path(sys.argv[0]).stem}: {' '.join(arguments)} ended with {done.returncode}:\n"
                 f"{done.stdout}")
    return done.stdout
