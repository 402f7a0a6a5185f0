#!/usr/bin/env python3
"""Is what `skein launch --jobset` prints a JobSet?

  job_set_test.py SKEIN

Judges: the published schema of JobSet (kubeflow-trainer-api holds it as classes) and those of Kubernetes
(kubernetes-validate), which know every field and refuse others. The rest of this file is what the manifest
means: rules that the schemas cannot know. Ends with 77, skipped, where the schemas are not installed.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, ".deps", "kubernetes-schemas-1"))
try:
    import kubernetes_validate
    from kubeflow_trainer_api.models.jobset_v1alpha2_job_set import JobsetV1alpha2JobSet
except ImportError as missing:
    print(f"skipped: {missing}: scripts/test_tools.sh installs it")
    sys.exit(77)

KUBERNETES = "1.33"
CONFIG = """
[run]
dir = "/data/runs/My_run 1"
steps = 10
[model]
hf_config = "{folder}/model.json"
[data]
train = "/data/corpus.arrow"
tokenizer = "/data/tokenizer"
sequence_length = 64
[launch]
workers = 8
nodes = "{nodes}"
[device]
kind = "{kind}"
threads = {threads}
"""
MODEL = """{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2,
            "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 300}"""


def read(name):
    with open(os.path.join(ROOT, name)) as file:
        return file.read()


def manifest(skein, folder, nodes, kind, *options, threads=2, image=("--image", "registry/skein:1.0")):
    config = os.path.join(folder, "run.toml")
    with open(config, "w") as out:
        out.write(CONFIG.format(folder=folder, nodes=nodes, kind=kind, threads=threads))
    with open(os.path.join(folder, "model.json"), "w") as out:
        out.write(MODEL)
    command = [skein, "launch", "--jobset", config, "--print", *image, *options]
    return subprocess.run(command, capture_output=True, text=True)


def items(printed):
    listed = json.loads(printed)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List"), listed
    return listed["items"]


def lost(given, kept, place=""):
    """The fields of `given` that a reader who knows only the schema does not keep."""
    if isinstance(given, dict):
        return [field for key, value in given.items()
                for field in (lost(value, kept[key], f"{place}.{key}") if key in kept else [f"{place}.{key}"])]
    if isinstance(given, list):
        return [field for i, value in enumerate(given) for field in lost(value, kept[i], f"{place}[{i}]")]
    return [] if given == kept else [place]


def check_schemas(config_map, job_set):
    unknown = lost(job_set, JobsetV1alpha2JobSet.from_dict(job_set).to_dict())
    assert not unknown, f"JobSet has no {unknown}"
    kubernetes_validate.validate(config_map, KUBERNETES, strict=True)
    for replicated in job_set["spec"]["replicatedJobs"]:
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "job"}, **replicated["template"]}
        kubernetes_validate.validate(job, KUBERNETES, strict=True)


def check_meaning(config_map, job_set, nodes, fewest):
    spec = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]
    pod = spec["template"]["spec"]
    assert (spec["parallelism"], spec["completions"]) == (nodes, nodes)
    assert ("successPolicy" in spec) == (fewest < nodes)
    # A podFailurePolicy is refused with another restart policy, and its names must be those of containers.
    assert pod["restartPolicy"] == "Never"
    container = pod["containers"][0]
    rules = {rule["onExitCodes"]["values"][0]: rule for rule in spec["podFailurePolicy"]["rules"]
             if "onExitCodes" in rule}
    assert {code: rule["action"] for code, rule in rules.items()} == {2: "FailJob", 75: "Ignore"}
    assert all(rule["onExitCodes"]["containerName"] == container["name"] for rule in rules.values())
    assert job_set["spec"]["failurePolicy"]["maxRestarts"] == 3
    mounted = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert mounted.keys() == {volume["name"] for volume in pod["volumes"]}
    assert mounted["shared-memory"] == "/dev/shm" and "/data" in mounted.values()
    assert container["command"] == ["skein", "train", mounted["config"] + "/config.toml"]
    longest = f"{job_set['metadata']['name']}-node-0-{nodes - 1}-abcde"
    assert len(longest) <= 63, longest
    assert config_map["metadata"]["name"] == job_set["metadata"]["name"]
    assert '"hidden_size": 64' in config_map["data"]["model.json"]


def check_configuration(skein, folder, config_map):
    """The program understands the configuration in the manifest, beside its model."""
    for name, text in config_map["data"].items():
        with open(os.path.join(folder, name), "w") as out:
            out.write(text)
    plan = subprocess.run([skein, "plan", os.path.join(folder, "config.toml"), "--passes",
                           "--set", "device.kind=cpu"], capture_output=True, text=True)
    assert plan.returncode == 0, plan.stderr


def main():
    skein = os.path.abspath(sys.argv[1])
    volume = ["--volume", "shared:/data"]
    with tempfile.TemporaryDirectory() as folder:
        for nodes, fewest, most, kind, options in [
                ("1", 1, 1, "cpu", []), ("16", 16, 16, "cuda", ["--shared-memory", "8Gi"]),
                ("2:4", 2, 4, "cpu", ["--namespace", "training", "--resource", "memory=64Gi", "--cpus", "32"])]:
            done = manifest(skein, folder, nodes, kind, *volume, *options)
            assert done.returncode == 0, done.stderr
            config_map, job_set = items(done.stdout)
            check_schemas(config_map, job_set)
            check_meaning(config_map, job_set, most, fewest)
            check_configuration(skein, folder, config_map)
        # A pod computes with what it asks for: a worker's share of it, where nobody says how many threads.
        for options, cpus, threads in [([], "8", 1), (["--cpus", "32"], "32", 4), (["--cpus", "4"], "4", 1)]:
            done = manifest(skein, folder, "1", "cpu", *volume, *options, threads=0)
            config_map, job_set = items(done.stdout)
            pod = job_set["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
            assert str(pod["containers"][0]["resources"]["requests"]["cpu"]) == cpus, pod
            assert f"\nthreads = {threads}\n" in config_map["data"]["config.toml"], config_map
        for options, said in [(volume[:0], "which no pod would see"),
                              (["--volume", "shared"], "expected CLAIM:/MOUNT"),
                              ([*volume, "--name", "My_run"], "lower-case letters"),
                              ([*volume, "--resource", "memory"], "expected NAME=QUANTITY")]:
            done = manifest(skein, folder, "1", "cpu", *options)
            assert done.returncode == 2 and said in done.stderr and done.stdout == "", done.stderr
        done = manifest(skein, folder, "1", "cpu", *volume, image=())
        assert done.returncode == 2 and 'docs/installing.md, "Container", says how one is made' in done.stderr, done.stderr
        assert "\n## Container\n" in read("docs/installing.md")
    print("the JobSets are valid")
    return 0


if __name__ == "__main__":
    sys.exit(main())
