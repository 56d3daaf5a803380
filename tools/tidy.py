#!/usr/bin/env python3
"""clang-tidy over every source file that a build compiles.

    tidy.py BUILD [--jobs N]

BUILD is a finished Ninja build with compile_commands.json. A file that passed before with the same text, project headers,
command line and configuration is skipped; what passed is remembered below $XDG_CACHE_HOME/octet/tidy.
"""

import argparse
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "octet", "tidy")


def digest(parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def headers_of(build):
    """Object file -> the files of this tree that it was made from, as Ninja recorded them."""
    listing = subprocess.run(["ninja", "-C", build, "-t", "deps"], check=True, capture_output=True, text=True).stdout
    found, current = {}, None
    for line in listing.splitlines():
        if line.startswith(" "):
            path = os.path.normpath(os.path.join(build, line.strip()))
            if path.startswith(ROOT + os.sep) and not path.startswith(build + os.sep):
                current.append(path)
        elif ":" in line:
            current = found.setdefault(line.split(":")[0], [])
    return found


@functools.cache
def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def jobs_of(build):
    """(source, cache file) of every source that did not pass before, and the number of all sources."""
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True, text=True).stdout
    settings = digest([version, read(os.path.join(ROOT, ".clang-tidy"))])
    headers = headers_of(build)
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    waiting = {}
    for entry in commands:
        source = entry["file"]
        output = re.search(r" -o (\S+)", entry["command"]).group(1)
        if output not in headers:
            sys.exit(f"tidy: {source} has no recorded dependencies; build {build} first")
        texts = [read(path) for path in sorted(set(headers[output]) | {source})]
        command = entry["command"].replace(ROOT, "")
        waiting.setdefault(source, os.path.join(CACHE, digest([settings, command, *texts])))
    return [job for job in sorted(waiting.items()) if not os.path.exists(job[1])], len(waiting)


def check(build, source, passed):
    """What clang-tidy says of one file; empty when it passes."""
    command = ["clang-tidy", "--quiet", "-p", build, "--extra-arg=-Wno-unknown-warning-option",
               "--extra-arg=-Wno-zero-as-null-pointer-constant", source]
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode != 0:
        return f"{result.stdout}{result.stderr}tidy: {os.path.relpath(source, ROOT)} failed\n"
    with open(passed, "w", encoding="utf-8"):
        return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    build = os.path.realpath(args.build)
    os.makedirs(CACHE, exist_ok=True)
    waiting, total = jobs_of(build)
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for said in pool.map(lambda job: check(build, *job), waiting):
            failed += bool(said)
            sys.stdout.write(said)
    print(f"tidy: {total} files, {len(waiting)} of them checked now, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
