"""A store that speaks S3's protocol, for tests: moto, with AWS's own client beside it, on loopback.

Importing it ends the program with 77, skipped, where moto is not installed.
"""
import logging
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / ".deps" / "moto-5.2.5")]
try:
    import boto3
    from moto.server import ThreadedMotoServer
except ImportError as missing:
    print(f"skipped: {missing}: scripts/setup.sh installs it")
    sys.exit(77)

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


class Store:
    """`home`: an empty folder, so that nobody's own credentials count."""

    def __init__(self, home):
        os.environ.update(HOME=str(home), AWS_EC2_METADATA_DISABLED="true", **KEYS)
        for variable in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_PROFILE", "AWS_REGION"):
            os.environ.pop(variable, None)
        logging.getLogger("werkzeug").setLevel(logging.ERROR)  # a line a request
        self.server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self.server.start()
        self.port = self.server.get_host_and_port()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = boto3.client("s3", endpoint_url=self.url)

    def names(self, bucket, prefix):
        """Of all objects under the prefix, without it; a name that ends in a slash stands for a folder."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return sorted(key[len(prefix):] for key in keys if not key.endswith("/"))
