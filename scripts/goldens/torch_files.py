"""Writes skein/checkpoint/hugging_face/testdata/torch/*.bin with torch.save, and the seeds of torch_file_fuzz.

    python scripts/goldens/torch_files.py
"""

import collections
import os
import pathlib
import pickle
import shutil
import struct
import zipfile

import torch

root = pathlib.Path(__file__).resolve().parents[2]
out = root / "skein" / "checkpoint" / "hugging_face" / "testdata" / "torch"
seeds = root / "tests" / "fuzz" / "torch_file_fuzz"
ramp = torch.arange(6, dtype=torch.float32).reshape(2, 3) * 0.5 - 1

# As safetensors_golden.py, and what only torch has: shared storages, strides, offsets, parameters.
matrix = torch.arange(24, dtype=torch.float32).reshape(4, 6)
tensors = collections.OrderedDict(
    {
        "ramp.f32": ramp,
        "ramp.bf16": ramp.to(torch.bfloat16),
        "ramp.f16": ramp.to(torch.float16),
        "ramp.f64": ramp.to(torch.float64),
        "count.i64": torch.tensor([7, -8], dtype=torch.int64),
        "mask.bool": torch.tensor([[[True, False, True]]]),
        "rotary_emb.inv_freq": torch.tensor([1.0, 0.1]),
        "attn.masked_bias": torch.tensor(-1e4),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 4),
        "parameter": torch.nn.Parameter(ramp.clone()),
        "whole": matrix,
        "tied": matrix,
        "transposed": matrix.t(),
        "columns": matrix[:, 1:3],
        "rows": matrix[2:],
        "every_other": matrix[::2, ::3],
        "turned": torch.arange(24, dtype=torch.float16).reshape(2, 3, 4).permute(2, 0, 1),
    }
)
tensors._metadata = collections.OrderedDict({"": {"version": 1}})


class RunsCode:
    def __reduce__(self):
        return os.system, ("echo owned",)


def hand_made(path, pickled, storage=b"\0" * 16):
    """A zip file as torch.save's around a pickle that torch.save would not make."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        file.writestr("archive/data.pkl", pickled)
        file.writestr("archive/byteorder", "little")
        file.writestr("archive/data/0", storage)


def tensor_pickle(elements=4, offset=0, sizes=(4,), strides=(1,)):
    """The pickle of {"w": tensor} of the storage 0 with any geometry."""
    number = lambda n: b"\x8a\x08" + struct.pack("<q", n)
    text = lambda t: b"X" + struct.pack("<I", len(t)) + t.encode()
    numbers = lambda ns: b"(" + b"".join(map(number, ns)) + b"t"
    return (
        b"\x80\x02}" + text("w") + b"ctorch._utils\n_rebuild_tensor_v2\n("
        + b"(" + text("storage") + b"ctorch\nFloatStorage\n" + text("0") + text("cpu") + number(elements)
        + b"tQ" + number(offset) + numbers(sizes) + numbers(strides)
        + b"\x89ccollections\nOrderedDict\n)RtRs."
    )


shutil.rmtree(out, ignore_errors=True)
out.mkdir(parents=True)
torch.save(tensors, out / "golden.bin")
torch.save(tensors, out / "legacy.bin", _use_new_zipfile_serialization=False)
torch.save({"model": {"w": ramp}, "step": 7}, out / "training.bin")
torch.save([ramp], out / "list.bin")
torch.save({"w": torch.zeros(2, dtype=torch.complex64)}, out / "complex.bin")
torch.save({"w": ramp.to_sparse()}, out / "sparse.bin")
hand_made(out / "runs_code.bin", pickle.dumps({"w": RunsCode()}, protocol=2).replace(b"posix", b"os"))
hand_made(out / "protocol4.bin", pickle.dumps({"w": 1}, protocol=4))
with zipfile.ZipFile(out / "compressed.bin", "w", zipfile.ZIP_DEFLATED) as file:
    file.writestr("archive/data.pkl", tensor_pickle())
with zipfile.ZipFile(out / "no_pickle.bin", "w", zipfile.ZIP_STORED) as file:
    file.writestr("readme.txt", "no weights")
for name, geometry in {
    "good": {},
    "past_end": {"offset": 1},
    "negative_offset": {"offset": -1},
    "far_offset": {"offset": -(2**63)},
    "long_stride": {"strides": (2,)},
    "negative_stride": {"strides": (-1,), "offset": 3},
    "wraps_around": {"sizes": (2**31, 2**31), "strides": (2**32, 2**32)},
    "expanded": {"sizes": (1000, 4), "strides": (0, 1)},
    "overlaps": {"sizes": (2, 3), "strides": (1, 1)},
    "other_storage_size": {"elements": 5},
}.items():
    hand_made(out / f"geometry_{name}.bin", tensor_pickle(**geometry))

shutil.rmtree(seeds, ignore_errors=True)
seeds.mkdir(parents=True)
for path in sorted(out.iterdir()):
    if path.name not in ("legacy.bin",):
        shutil.copy(path, seeds / path.stem)
