"""A store that speaks S3's protocol, for tests of `skein`: moto, whose objects AWS's own client writes.
Where it is not installed, importing this ends the test with 77, skipped.
"""
import logging
import os
import pathlib
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOTO = ROOT / ".deps" / "moto-5.2.5"
sys.path[:0] = [str(MOTO)]
try:
    import boto3
    from moto.server import ThreadedMotoServer
except ImportError as missing:
    print(f"skipped: {missing}: scripts/test_tools.sh installs it")
    sys.exit(77)

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing", "AWS_DEFAULT_REGION": "us-east-1"}


def expect(condition, what):
    if not condition:
        print(f"FAILED: {what}")
        sys.exit(1)


def run(skein, words, environment=None, expected=0):
    """What `skein` says, in both streams."""
    done = subprocess.run([skein, *words], capture_output=True, text=True, env={**os.environ, **(environment or {})},
                          timeout=1500)
    expect(done.returncode == expected, f"skein {' '.join(words)}: code {done.returncode}: {done.stdout}{done.stderr}")
    return done.stdout + done.stderr


class Store:
    """A bucket `texts`, and an environment in which nothing else of AWS is known."""

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
        self.client.create_bucket(Bucket="texts")

    def names(self, bucket, prefix):
        """Of all objects under the prefix, without it; a name that ends in a slash stands for a folder."""
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        keys = [entry["Key"] for page in pages for entry in page.get("Contents", [])]
        return sorted(key[len(prefix):] for key in keys if not key.endswith("/"))

    def upload(self, folder, prefix):
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.client.upload_file(str(path), "texts", f"{prefix}/{path.relative_to(folder)}")

    def check_credentials(self):
        """From now on; returns the variables of a client whose credentials are wrong."""
        ask = urllib.request.Request(f"{self.url}/moto-api/reset-auth", data=b"0",
                                     headers={"Content-Type": "text/plain"})
        urllib.request.urlopen(ask).read()
        return {**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong", "AWS_ENDPOINT_URL": self.url}

    def stop(self):
        self.server.stop()
