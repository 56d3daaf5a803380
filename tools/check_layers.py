#!/usr/bin/env python3
"""Fails with file:line when a source file includes a layer that its own may not include.

    check_layers.py [ROOT]

The table is the one of DESIGN.md, "Layers". Two more rules: DeviceKind:: is absent from plan/ and model/, and whatever
prints, ends the process or reads the environment is absent outside cli/ (FORBIDDEN has the words). Comments and string
literals are not looked at. Before the tree it judges the lines of SELF_TEST, so that a broken pattern is no green check.
"""

import pathlib
import re
import sys
import tempfile

ALLOWED = {
    "base": set(),
    "num": {"base"},
    "device": {"base", "num"},
    "io": {"base", "num"},
    "op": {"base", "num", "device"},
    "kernels": {"base", "num", "device", "op"},
    "plan": {"base", "num", "device", "io", "op"},
    "dist": {"base", "num", "device"},
    "kv": {"base", "num", "device"},
    "text": {"base"},
    "convert": {"base", "num", "io", "text"},
    "model": {"base", "num", "device", "io", "op", "plan", "kv", "dist"},
    "engine": {"base", "num", "device", "io", "op", "plan", "kv", "dist", "model"},
    "quantize": {"base", "num", "device", "io", "op", "plan", "model", "engine", "text"},
    "evaluate": {"base", "num", "device", "io", "op", "plan", "model", "engine", "text"},
    "cli": {"base", "num", "device", "io", "op", "plan", "kv", "dist", "text", "model", "engine", "quantize", "evaluate", "convert"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
FORBIDDEN = re.compile(
    r"\b(?:secure_)?getenv\b|\benviron\b"
    r"|\bstd::(?:cout|cerr|clog|print|println|terminate)\b|\bfmt::(?:print|println)\b|\b(?:stdout|stderr)\b"
    r"|\b(?:v?f?printf|v?dprintf|f?puts|f?putc|putchar|perror|psignal)\s*\("
    r"|\bwrite\s*\(\s*(?:[12]\s*,|STD)"
    r"|\b(?:abort|exit|_exit|_Exit|quick_exit|__builtin_trap)\s*\("
)
LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')


def problems(root):
    for path in sorted((root / "src").rglob("*")):
        if path.suffix not in {".h", ".cpp"}:
            continue
        relative = path.relative_to(root / "src")
        layer = relative.parts[0]
        test = path.stem.endswith(("_test", "_bench"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            where = f"{path.relative_to(root)}:{number}"
            match = INCLUDE.match(line)
            if match:
                other = match[1].split("/")[0]
                if other == "testing" and test or other == layer:
                    continue
                if layer not in ALLOWED:
                    yield f"{where}: folder '{layer}' is not a layer"
                elif other not in ALLOWED[layer]:
                    yield f"{where}: layer '{layer}' may not include '{other}'"
            code = LITERAL.sub('""', line).split("//")[0]
            if layer in {"plan", "model"} and not test and "DeviceKind::" in code:
                yield f"{where}: layer '{layer}' may not decide by DeviceKind"
            if layer != "cli" and not test and FORBIDDEN.search(code):
                yield f"{where}: layer '{layer}' may not print, end the process or read the environment"


SELF_TEST = {
    'std::printf("x");': True,
    "printf ( format );": True,
    "fprintf(file, text);": True,
    "vfprintf(file, text, list);": True,
    "puts(text);": True,
    "fputs(text, file);": True,
    "perror(text);": True,
    "fmt::print(text);": True,
    "std::print(text);": True,
    "std::println(text);": True,
    "std::cout << 1;": True,
    "std::cerr << 1;": True,
    "fwrite(data, 1, size, stderr);": True,
    "::write(1, data, size);": True,
    "write(STDERR_FILENO, data, size);": True,
    "exit(1);": True,
    "std::exit(1);": True,
    "_exit(1);": True,
    "std::abort();": True,
    "std::terminate();": True,
    'std::getenv("HOME");': True,
    "snprintf(buffer, size, format);": False,
    "exit_status(code);": False,
    "inputs(1); outputs(2);": False,
    "::write(fd, data, size);": False,
    "writer.write(name, bytes);": False,
    "// puts(text) is not called": False,
    'fail("abort() and getenv are words");': False,
}


def self_test():
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "src" / "io" / "file.cpp"
        file.parent.mkdir(parents=True)
        file.write_text("\n".join(SELF_TEST) + "\n", encoding="utf-8")
        found = {int(problem.split(":")[1]) for problem in problems(pathlib.Path(folder))}
    wrong = [line for number, line in enumerate(SELF_TEST, 1) if (number in found) != SELF_TEST[line]]
    print("\n".join(f"judged wrongly: {line}" for line in wrong), end="\n" if wrong else "")
    return 1 if wrong else 0


def main():
    if self_test():
        return 1
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    found = list(problems(root))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
