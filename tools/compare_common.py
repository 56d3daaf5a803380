"""What compare_tokenizers.py and compare_templates.py share: folders, the probe, the summary."""

import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def arguments(description):
    """The command line: DIR and --probe. Exits with 2 when they are wrong."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, metavar="DIR", help="a model folder, or one that holds some, at any depth")
    parser.add_argument("--probe", type=pathlib.Path, metavar="PROGRAM",
                        help="text_probe of a build (default: the newest of build/*/tests/text_probe)")
    args = parser.parse_args()
    if not args.folder.is_dir():
        parser.error(f"{args.folder} is no folder")
    if args.probe is None:
        built = sorted(ROOT.glob("build/*/tests/text_probe/text_probe"), key=lambda path: path.stat().st_mtime)
        if not built:
            parser.error("there is no text_probe; build it (cmake --build --preset release --target text_probe), or say --probe")
        args.probe = built[-1]
    if not args.probe.is_file():
        parser.error(f"{args.probe} is no program")
    return args


def read_json(path):
    """The object in a JSON file; an empty one when there is no file."""
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


class Probe:
    """A running text_probe; `refusal` says why there is none."""

    def __init__(self, program, *words):
        self.process = subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, encoding="utf-8")

    def ask(self, question):
        """The answer to one question; None when the program has ended."""
        try:
            self.process.stdin.write(json.dumps(question) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        """What the program wrote to the standard error, with its exit status."""
        try:
            _, errors = self.process.communicate()
        except BrokenPipeError:
            errors = self.process.stderr.read()
        return self.process.wait(), errors.strip()


class Report:
    """Counts comparisons and prints those that differ, the first few of each folder in full."""

    SHOWN = 5

    def __init__(self, what):
        self.what, self.folders, self.compared, self.differences, self.here = what, 0, 0, 0, 0

    def begin(self, folder):
        self.folders += 1
        self.here = 0
        self.folder = folder

    def refused(self, why):
        self.compared += 1
        self._count(f"refused: {why}")

    def compare(self, label, ours, theirs):
        self.compared += 1
        if ours != theirs:
            self._count(f"{label}\n  octet     {shown(ours)}\n  reference {shown(theirs)}")

    def _count(self, text):
        self.differences += 1
        self.here += 1
        if self.here <= self.SHOWN:
            print(f"{self.folder}: {text}")
        elif self.here == self.SHOWN + 1:
            print(f"{self.folder}: more of these are counted only")

    def end(self):
        """Prints the summary and exits: 0 all equal, 1 something differs, 2 nothing to compare."""
        print(f"{self.folders} {self.what}, {self.compared} comparisons, {self.differences} differ")
        sys.exit(2 if self.folders == 0 else 1 if self.differences else 0)


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"
