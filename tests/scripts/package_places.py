#!/usr/bin/env python3
"""Runs what scripts/package.sh makes where it may be taken. Nothing is built: build/skein is taken as it is.

    tests/scripts/package_places.py PLACE… [--keep FOLDER] [--objects N]

  empty      the archive alone: no C library, no shell
  system     the archive and this machine's C library
  drivers    a program that loads a stand-in for libcuda.so.1, in the place of skein: found in each usual folder
  shell      the archive and a static shell
  old        the archive on Debian 11, whose C library is older
  image      the root that packaging/Containerfile makes: no network, read-only, 64 MB of /dev/shm, no root
  recipe     the build stage of packaging/Containerfile, by its own commands in a Debian 12 of required packages
  deb        the Debian package, installed, run and purged in a Debian 12 of essential packages
  wheel      the wheel, installed by pip, run and uninstalled in a Debian 11 of essential packages and Python

In each, but for `system` and `drivers`, a model is trained by two workers; one of them is killed, then all; the run
is started again, and must have the numbers of a run that nobody struck. `empty`, `system` and `drivers` are
part of every test run. The others fetch packages with mmdebstrap and apt, and need root; lintian and
auditwheel judge, where they are installed.

  --keep FOLDER   where what is made and fetched is kept, and taken from by the next run
  --objects N     `recipe` stops when N objects are compiled; without it, everything is (from this machine's ccache,
                  where it is there), and the image is run

Exit code 77: skipped, a chroot is not possible here.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from package_root import REPOSITORY, WITHOUT_ROOT, Failed, Root, do_the_job


PLACES = ("empty", "system", "drivers", "shell", "old", "image", "recipe", "deb", "wheel")


def call(*words, **options):
    done = subprocess.run([str(word) for word in words], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          cwd=options.pop("cwd", REPOSITORY), **options)
    if done.returncode:
        raise Failed(f"{' '.join(map(str, words))} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def require(is_so, text):
    if not is_so:
        raise Failed(text)


class Places:
    def __init__(self, folder, max_objects):
        self.folder, self.max_objects = folder, max_objects

    def package(self, kind, pattern):
        """What scripts/package.sh makes, made once."""
        made = list(self.folder.glob(pattern))
        if not made:
            print(call("scripts/package.sh", "--no-build", f"--{kind}", self.folder), end="", flush=True)
            made = list(self.folder.glob(pattern))
            call("sha256sum", "--check", f"{made[0].name}.sha256", cwd=self.folder)
        return made[0]

    def new_root(self, name):
        root = self.folder / name
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        return root

    def unpacked(self, name):
        """A root with the archive under another name than its own, at another place."""
        root = self.new_root(name)
        call("tar", "-C", root, "-xzf", self.package("archive", "skein-*.tar.gz"))
        next(root.glob("skein-*")).rename(root / "moved")
        return root

    def debian(self, name, suite, *packages, variant="essential"):
        """Debian's essential packages and these; a copy of what is kept."""
        kept = self.folder / f"{suite}-{'-'.join([variant, *packages])}.tar"
        if not kept.exists():
            part = self.folder / f"part-{kept.name}"
            call("mmdebstrap", f"--variant={variant}", *(f"--include={name}" for name in packages), suite, part)
            part.rename(kept)
        root = self.new_root(name)
        call("tar", "-C", root, "--exclude=./dev/*", "-xf", kept)
        return root

    def empty(self):
        path = self.unpacked("empty")
        root = Root(path, "/moved/bin/skein")
        libraries = root.libraries()
        require(libraries.get("libc.so.6") == "/moved/lib/skein/glibc/libc.so.6", f"the C library of {libraries}")
        elsewhere = [name for name, file in libraries.items() if not file.startswith("/moved/")]
        require(not elsewhere, f"not in the archive: {elsewhere}")
        require("0." in Root(path, "/moved/bin/skein", options="").run("version"), "the version, without /proc")
        job = root.run("data", "ingest", "--slurm", "--shards", "4", "--out", "/job/a", "/moved/share")
        require("exec /moved/bin/skein data ingest" in job, f"expected a job that the launcher starts:\n{job}")
        plan = ("plan", "/moved/share/skein/configs/demo.toml", "--hardware",
                "/moved/share/skein/configs/hardware/h100-8x.toml")
        root.run(*plan)
        # The loader, named by hand.
        loader = next((path / "moved/lib/skein/glibc").glob("ld-linux-*")).name
        by_hand = [f"/moved/lib/skein/glibc/{loader}", "--library-path", "/moved/lib/skein/glibc:/moved/lib/skein"]
        root.run(*by_hand[1:], "/moved/libexec/skein", "version", program=by_hand[0])
        do_the_job(root)

        for file in ("share/man/man1/skein.1", "share/bash-completion/completions/skein",
                     "share/zsh/site-functions/_skein", "share/fish/vendor_completions.d/skein.fish",
                     "share/doc/skein/README.md", "share/doc/skein/docs/configuration.md",
                     "share/skein/configs/demo.toml", "REQUIRES"):
            require((path / "moved" / file).stat().st_size, f"the archive lacks {file}")
        self.check_licences(path / "moved/share/doc/skein/licences")
        said = root.run("version", expected=2, environment={"SKEIN_C_LIBRARY": "both"})
        require("SKEIN_C_LIBRARY=both: own or system is expected" in said, said)
        shutil.rmtree(path / "moved/lib/skein/glibc")
        said = root.run("version", expected=1)
        require("is missing: unpack the whole archive" in said, said)

    def check_licences(self, folder):
        """Of a library beside the program, of one that is headers alone, of what Arrow holds; and the texts they name."""
        for name, words in (("libc6", "GNU C Library"), ("libcurl4", "Daniel Stenberg"), ("libhwy-dev", "Apache"),
                            ("nlohmann-json3-dev", "Niels Lohmann"), ("libcli11-dev", "Henry Schreiner"),
                            ("pyarrow-*.LICENSE.txt", "3rdparty dependency Brotli is statically linked"),
                            ("pyarrow-*.NOTICE.txt", "Apache Arrow"), ("common-licenses/LGPL-2.1", "Version 2.1")):
            files = list(folder.glob(name))
            require(len(files) == 1 and words in files[0].read_text(), f"licences: {files}, expected '{words}' in {name}")

    def system(self):
        path = self.unpacked("system")
        text = call("ldd", path / "moved/libexec/skein")
        for file in re.findall(r"(/\S+/(?:ld-linux-\S+|lib(?:c|m|mvec|pthread|dl|rt|resolv|util)\.so\.\d+)) \(", text):
            resolved = Path(file).resolve()  # where the loader and the C library lie beside each other
            for place in {Path(file), resolved}:
                target = path / str(place).lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                if place != resolved and place.name.startswith("ld-"):
                    target.symlink_to(resolved)
                elif not target.exists():
                    shutil.copy(resolved, target)
        root = Root(path, "/moved/bin/skein")
        library = root.libraries()["libc.so.6"]
        require(not library.startswith("/moved/"), f"{library} is taken, expected the system's, which is new enough")
        own = Root(path, "/moved/bin/skein", environment={"SKEIN_C_LIBRARY": "own"}).libraries()["libc.so.6"]
        require(own.startswith("/moved/"), f"{own} is taken, expected the archive's, by SKEIN_C_LIBRARY")
        root.run("version")

    def drivers(self):
        path = self.unpacked("drivers")
        for name, options in (("libcuda.so.1", ["-shared", "-x", "c", "-"]), ("probe", ["-x", "c", "-"])):
            source = "int cuInit(void) { return 0; }" if name.startswith("lib") else PROBE
            call("cc", "-fPIC", *options, "-o", self.folder / name, input=source)
        shutil.copy(self.folder / "probe", path / "moved/libexec/skein")
        root = Root(path, "/moved/bin/skein", options="proc")
        require(root.run().strip() == "none", "a driver is found where there is none")
        for folder, environment in (("usr/lib64", {}), (f"usr/lib/{os.uname().machine}-linux-gnu", {}),
                                    ("usr/local/nvidia/lib64", {}), ("opt/known", {}),
                                    ("opt/said", {"LD_LIBRARY_PATH": "/opt/said"})):
            library = path / folder / "libcuda.so.1"
            library.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(self.folder / "libcuda.so.1", library)
            if folder == "opt/known":  # by the system's cache alone
                (path / "etc").mkdir()
                call("/sbin/ldconfig", "-r", path, "-C", "/etc/ld.so.cache", "-f", "/dev/null", "/opt/known")
            found = root.run("a b", environment=environment).split("\n")
            require(found[:2] == [f"/{folder}/libcuda.so.1", "a b"], f"{found}, expected the driver of /{folder}")
            library.unlink()

    def shell(self):
        path = self.unpacked("shell")
        busybox = self.folder / "busybox"
        if not busybox.exists():
            with tempfile.TemporaryDirectory() as folder:
                call("apt-get", "-o", "APT::Sandbox::User=root", "download", "busybox-static", cwd=folder)
                call("dpkg-deb", "-x", next(Path(folder).glob("*.deb")), Path(folder) / "tree")
                shutil.copy(Path(folder) / "tree/bin/busybox", busybox)
        (path / "bin").mkdir()
        shutil.copy(busybox, path / "bin/busybox")
        (path / "bin/sh").symlink_to("busybox")
        root = Root(path, "/moved/bin/skein")
        do_the_job(root, "launch.on_event=busybox cat >> /job/said")
        require((root.work / "said").stat().st_size, "the shell was not called")
        # From another folder, through a link, by a name that is looked for.
        (path / "bin/skein").symlink_to("/moved/bin/skein")
        root.run("-c", "cd /job && exec skein version", program="/bin/sh")

    def old(self):
        path = self.debian("old", "bullseye")
        call("tar", "-C", path, "-xzf", self.package("archive", "skein-*.tar.gz"))
        next(path.glob("skein-*")).rename(path / "moved")
        with (path / "etc/hosts").open("a") as hosts:
            hosts.write("127.0.0.1 localhost somewhere\n")
        root = Root(path, "/moved/bin/skein", user="1000:1000", options="proc dev no-network")
        require(root.libraries()["libc.so.6"].startswith("/moved/"), "the system's C library is too old")
        said = root.run("version", expected=1, environment={"SKEIN_C_LIBRARY": "system"})
        require("GLIBC_" in said, said)
        do_the_job(root, "log.prometheus=somewhere:9464")

    def image(self):
        path = self.debian("image-build", "bookworm", "busybox-static", "ca-certificates")
        shutil.copy(self.package("archive", "skein-*.tar.gz"), path / "skein.tar.gz")
        for script in ("image_root.sh", "licences.sh"):
            shutil.copy(REPOSITORY / "packaging" / script, path)
        print(Root(path, "/bin/bash").run("/image_root.sh", "/skein.tar.gz", "/image"), end="")
        root_path = self.new_root("image")
        root_path.rmdir()
        (path / "image").rename(root_path)
        self.run_image(root_path)

    def run_image(self, root_path):
        """What an engine does with the last stage of the Containerfile."""
        recipe = (REPOSITORY / "packaging/Containerfile").read_text()
        user = re.search(r"^USER (\S+)$", recipe, re.M).group(1)
        path_variable = re.search(r"^ENV PATH=(\S+)$", recipe, re.M).group(1)
        for package in ("busybox-static", "ca-certificates"):
            require((root_path / "usr/share/doc/skein/licences" / package).exists(), f"no licence of {package}")
        root = Root(root_path, "/usr/bin/skein", user, "proc dev no-network read-only",
                    {"PATH": f"{path_variable}:/usr/sbin:/sbin"})
        library = root.libraries()["libc.so.6"]
        require(library.startswith("/usr/lib/skein/glibc"), f"{library} is taken, expected the image's")
        before = listing(root_path)
        root.run("-c", "! touch /usr/written && test $(id -u) = 65532 && skein version", program="/bin/sh")
        do_the_job(root, "launch.on_event=cat >> /job/said")
        require(listing(root_path) == before, "the image was written to")

    def recipe(self):
        """The build stage of packaging/Containerfile, instruction by instruction as an engine follows it."""
        path = self.debian("recipe-build", "bookworm", variant="minbase")
        cache = call("ccache", "--get-config", "cache_dir").strip() if shutil.which("ccache") else ""
        handed = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")
                  or name.startswith("PIP_") and not Path(value).is_dir()}
        root = Root(path, "/bin/sh", environment={**handed, "CCACHE_DIR": "/cache"}, cache=cache)
        for file in ("etc/resolv.conf", "etc/hosts"):
            shutil.copy(f"/{file}", path / file)
        folder = "/"
        stage = (REPOSITORY / "packaging/Containerfile").read_text().split("FROM scratch")[0]
        for instruction, words in re.findall(r"^(RUN|COPY|WORKDIR) (.*)$", stage, re.M):
            print(f"recipe: {instruction} {words}", flush=True)
            if instruction == "WORKDIR":
                folder = words
            elif instruction == "COPY":
                require(words == ". /src", f"COPY {words}, expected . /src")
                self.copy_context(path / "src")
                certificates = "etc/ssl/certs/ca-certificates.crt"  # those that this machine trusts
                shutil.copy(f"/{certificates}", path / certificates)
            elif not self.follow(root, f"cd {folder} && {words}"):
                return
        root_path = self.new_root("recipe")
        root_path.rmdir()
        (path / "image").rename(root_path)
        self.run_image(root_path)

    def copy_context(self, to):
        """What COPY sees of this repository."""
        to.mkdir()
        left = [f"--exclude={name.removeprefix('**/') if name.startswith('**/') else '.' + name}"
                for name in (REPOSITORY / ".dockerignore").read_text().split()]
        call("bash", "-c", 'set -o pipefail; out=$1; shift; tar -c "$@" . | tar -C "$out" -x', "copy", to, *left)

    def follow(self, root, command):
        """Whether it ended. With --objects it is stopped when so many objects are compiled."""
        run, output = root.start("-c", command), None
        while output is None:
            num_compiled = len(list((root.path / "src/build").rglob("*.o")))
            if self.max_objects and num_compiled >= self.max_objects:
                run.kill()
                run.communicate()
                print(f"recipe: stopped after {num_compiled} objects, for --objects", flush=True)
                return False
            try:
                output = run.communicate(timeout=1)[0]
            except subprocess.TimeoutExpired:
                pass
        require(run.returncode == 0, f"{command} ended with {run.returncode}:\n{output}")
        print("\n".join(output.splitlines()[-6:]), flush=True)
        return True

    def deb(self):
        package = self.package("deb", "skein_*.deb")
        if shutil.which("lintian"):
            said = call("lintian", "--fail-on", "error,warning", "--allow-root", package)
            print(f"lintian: {said or 'nothing to say'}")
        path = self.debian("deb", "bookworm")
        shutil.copy(package, path / "skein.deb")
        root = Root(path, "/usr/bin/skein")
        before = listing(path)
        root.run("--install", "/skein.deb", program="/usr/bin/dpkg")
        user = Root(path, "/usr/bin/skein", user="1000:1000", options="proc dev no-network")
        configs = "/usr/share/skein/configs"
        user.run("plan", f"{configs}/demo.toml", "--hardware", f"{configs}/hardware/h100-8x.toml")
        do_the_job(user)
        root.run("--purge", "skein", program="/usr/bin/dpkg")
        left = [name for name in listing(path) - before if not name.startswith(("var/lib/dpkg", "var/log"))]
        require(not left, f"the purged package leaves {left}")
        kept = [str(file) for file in (path / "var/lib/dpkg/info").glob("skein*")]
        require(not kept, f"the purged package leaves {kept}")

    def wheel(self):
        wheel = self.package("wheel", "skein_llm-*.whl")
        if shutil.which("auditwheel"):
            self.audit()
        path = self.debian("wheel", "bullseye", "python3-venv")
        shutil.copy(wheel, path)
        root = Root(path, "/job/venv/bin/skein", user="1000:1000", options="proc dev no-network")
        root.run("-m", "venv", "/job/venv", program="/usr/bin/python3")
        before = listing(root.work / "venv")
        root.run("install", "--no-index", f"/{wheel.name}", program="/job/venv/bin/pip")
        require(root.libraries()["libc.so.6"].startswith("/job/venv/lib/skein/glibc"), "the wheel's C library")
        do_the_job(root)
        root.run("uninstall", "--yes", "skein-llm", program="/job/venv/bin/pip")
        # Of folders that it made pip keeps some, empty.
        left = [name for name in listing(root.work / "venv") - before
                if "__pycache__" not in name and not (root.work / "venv" / name).is_dir()]
        require(not left, f"the wheel leaves {left}")

    def audit(self):
        """auditwheel knows no wheel with a C library; it judges what runs under the system's."""
        root = self.unpacked("audit") / "moved"
        glibc = re.search(r"glibc where it is ([0-9.]+)", (root / "REQUIRES").read_text()).group(1)
        shutil.rmtree(root / "lib/skein/glibc")
        wheel = call("packaging/wheel.py", root, "0", root.parent).strip()
        said = " ".join(call("auditwheel", "show", wheel).split())
        tag = f"manylinux_{glibc.replace('.', '_')}_{os.uname().machine}"
        require(f'consistent with the following platform tag: "{tag}"' in said, f"{said}, expected {tag}")
        print(f"auditwheel: {tag}, without the wheel's own C library")


# Prints where libcuda.so.1 was found, and its arguments.
PROBE = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
int main(int argc, char** argv) {
  struct link_map* map = dlopen("libcuda.so.1", RTLD_NOW);
  puts(map ? map->l_name : "none");
  for (int i = 1; i < argc; ++i) puts(argv[i]);
}
"""


def listing(folder):
    return {str(file.relative_to(folder)) for file in folder.rglob("*")}


def main():
    words, options = sys.argv[1:], {"--keep": None, "--objects": "0"}
    for name in options:
        if name in words[:-1]:
            at = words.index(name)
            options[name] = words[at + 1]
            del words[at:at + 2]
    keep = options["--keep"] and Path(options["--keep"]).absolute()
    if not words or any(word not in PLACES for word in words):
        print(f"package_places: which? Expected some of {' '.join(PLACES)}", file=sys.stderr)
        return 2
    unshare = ["unshare", *WITHOUT_ROOT, "--mount", "--pid", "--fork", "true"]
    if subprocess.run(unshare, stderr=subprocess.DEVNULL).returncode:
        print("package_places: SKIPPED: a chroot needs root, or user namespaces", file=sys.stderr)
        return 77
    with tempfile.TemporaryDirectory() as temporary:
        places = Places(keep or Path(temporary), int(options["--objects"]))
        places.folder.mkdir(parents=True, exist_ok=True)
        for word in words:
            try:
                getattr(places, word)()
            except Failed as error:
                print(f"package_places: {word}: {error}", file=sys.stderr)
                return 1
            print(f"package_places: {word}: good", flush=True)
    return 0


sys.exit(main())
