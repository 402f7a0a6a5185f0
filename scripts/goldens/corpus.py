#!/usr/bin/env python3
"""Writes skein/data/corpus/testdata/: small corpora as Hugging Face `datasets` and pyarrow write them. Needs both;
no test runs this. Their documents: "first document", "", "zweites Dokument: äöü €", "line\\nbreak", and 40 times
"repeat ".

  datasets.arrow        the data file that Dataset.save_to_disk leaves: a stream, `string`, several record batches,
                        another column
  feather.arrow         IPC file format, `large_string`
  feather_lz4.arrow     the same with compressed buffers
  documents.parquet     Parquet with zstd pages and a nested column before `text`
"""
import pathlib
import tempfile

import datasets
import pyarrow as pa
import pyarrow.parquet as pq

OUT = pathlib.Path(__file__).resolve().parents[2] / "skein/data/corpus/testdata"
DOCUMENTS = ["first document", "", "zweites Dokument: äöü €", "line\nbreak", "repeat " * 40]


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    rows = {"id": list(range(len(DOCUMENTS))), "text": DOCUMENTS}
    with tempfile.TemporaryDirectory() as folder:
        writer = datasets.arrow_writer.ArrowWriter(path=folder + "/data.arrow", writer_batch_size=2,
                                                   features=datasets.Features(id=datasets.Value("int64"),
                                                                              text=datasets.Value("string")))
        for id, text in zip(rows["id"], rows["text"]):
            writer.write({"id": id, "text": text})
        writer.finalize()
        (OUT / "datasets.arrow").write_bytes(pathlib.Path(folder, "data.arrow").read_bytes())

    table = pa.table({"text": pa.array(DOCUMENTS, pa.large_string())})
    for name, compression in (("feather.arrow", None), ("feather_lz4.arrow", "lz4")):
        options = pa.ipc.IpcWriteOptions(compression=compression)
        with pa.OSFile(str(OUT / name), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
            writer.write_table(table)

    nested = pa.table({"tags": [["a", "text"], [], None, ["b"], ["c"]], "text": DOCUMENTS})
    pq.write_table(nested, OUT / "documents.parquet", compression="zstd", row_group_size=2)


if __name__ == "__main__":
    main()
