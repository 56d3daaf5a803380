#!/usr/bin/env python3
"""Fails with file:line when a source file includes a layer that its own may not include.

    check_layers.py [ROOT]

The table is the one of DESIGN.md, "Layers". Two more rules: DeviceKind:: is absent from plan/ and model/, and getenv,
std::cerr, std::cout and abort are absent outside cli/ and base/log.
"""

import pathlib
import re
import sys

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
    "model": {"base", "num", "device", "io", "op", "plan", "kv", "dist"},
    "engine": {"base", "num", "device", "io", "op", "plan", "kv", "dist", "model"},
    "quantize": {"base", "num", "device", "io", "op", "plan", "model", "engine", "text"},
    "evaluate": {"base", "num", "device", "io", "op", "plan", "model", "engine", "text"},
    "cli": {"base", "num", "device", "io", "op", "plan", "kv", "dist", "text", "model", "engine", "quantize", "evaluate"},
}
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"')
FORBIDDEN = re.compile(r"\b(getenv|std::cerr|std::cout|std::abort|abort\()")


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
            code = line.split("//")[0]
            if layer in {"plan", "model"} and not test and "DeviceKind::" in code:
                yield f"{where}: layer '{layer}' may not decide by DeviceKind"
            if layer != "cli" and not path.name.startswith("log") and not test and FORBIDDEN.search(code):
                yield f"{where}: layer '{layer}' may not print, abort or read the environment"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)
    found = list(problems(root))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
