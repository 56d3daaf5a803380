"""What compare_tokenizers.py and compare_templates.py share: folders, the probe, the summary.

Run by itself it tests what the two do with files that cannot be read.
"""

import argparse
import contextlib
import io
import json
import pathlib
import subprocess
import sys
import tempfile

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


class Unreadable(Exception):
    """A file that cannot be compared; the words name it and say why."""

    def __init__(self, path, reason):
        super().__init__(f"{path}: {' '.join(str(reason).split())}")


def read_text(path):
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as e:
        raise Unreadable(path, e.strerror if isinstance(e, OSError) and e.strerror else e) from e


def read_json(path):
    """The object in a JSON file; an empty one when there is no file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as e:
        raise Unreadable(path, f"no JSON: {e}") from e
    if not isinstance(value, dict):
        raise Unreadable(path, f"expected a JSON object, got {shown(value)}")
    return value


def run(main):
    """Runs a program that the user may stop."""
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)


class Probe:
    """A running text_probe; `refusal` says why there is none."""

    def __init__(self, program, *words):
        try:
            self.process = subprocess.Popen([program, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=subprocess.PIPE, encoding="utf-8")
        except OSError as e:
            sys.exit(f"{program}: {e.strerror}")

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

    def __init__(self, what, total=0):
        self.what, self.total = what, total
        self.folders, self.compared, self.differences, self.here, self.broken, self.looked_at = 0, 0, 0, 0, 0, 0

    def begin(self, folder):
        self.folders += 1
        self.here = 0
        self.folder = folder

    @contextlib.contextmanager
    def looking_at(self, path):
        """Shows the progress on a terminal. What is unreadable within is said in a line, and the caller goes on."""
        self.looked_at += 1
        if sys.stderr.isatty():
            print(f"\r\x1b[K{self.looked_at}/{self.total} {str(path)[-60:]!r}", end="", file=sys.stderr, flush=True)
        try:
            yield
        except (Unreadable, OSError) as e:
            self.broken += 1
            self._print(f"unreadable: {' '.join(str(e).split())}")

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
            self._print(f"{self.folder}: {text}")
        elif self.here == self.SHOWN + 1:
            self._print(f"{self.folder}: more of these are counted only")

    def _print(self, text):
        self._clear()
        print(text, flush=True)

    @staticmethod
    def _clear():
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def end(self):
        """Prints the summary and exits: 0 all equal, 1 something differs or is unreadable, 2 nothing to compare."""
        broken = f", {self.broken} unreadable" if self.broken else ""
        self._print(f"{self.folders} {self.what}, {self.compared} comparisons, {self.differences} differ{broken}")
        sys.exit(1 if self.differences or self.broken else 2 if self.folders == 0 else 0)


def shown(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else f"{text[:300]}... ({len(text)} characters)"


def self_test():
    """Exits with a message when a broken file is not said in one line that names it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
        path = pathlib.Path(folder) / "tokenizer_config.json"
        report = Report("folders", 5)
        for content in (b"{", b"\xff", b"[]", b"[" * 100000):
            path.write_bytes(content)
            with report.looking_at(path):
                read_json(path)
        path.write_bytes(b'{"a": 1}')
        with report.looking_at(path):
            report.compare("a", read_json(path), {"a": 1})
        try:
            report.end()
        except SystemExit as e:
            status = e.code
    lines = out.getvalue().splitlines()
    if status != 1 or len(lines) != 5 or not all(line.startswith(f"unreadable: {path}: ") for line in lines[:4]):
        sys.exit(f"compare_common.py: exit {status}, lines {lines}")


if __name__ == "__main__":
    self_test()
