#!/usr/bin/env python3
"""Compiles every OpenCL program for Intel GPUs, without one, and judges what the compiler made of it.

    offline_gate.py DUMP_PROGRAMS [--device NAME]... [--jobs N] [--markdown FILE | --check FILE]
    offline_gate.py --self-test

DUMP_PROGRAMS is the test program tests/opencl/dump_programs of a build. ocloc (Debian: intel-opencl-icd) compiles, iga64
(libigc-tools) disassembles. A kernel is at fault when it does not compile, calls a function (a built-in that the compiler
does not know), needs scratch memory (registers spill), or lacks the matrix engine that its family claims. Prints a line per
kernel and device; exit status 1 with a line per fault. Results are kept in build/offline_gate, by source and compiler.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CACHE = os.path.join(ROOT, "build", "offline_gate")
PLATFORMS = {"pvc": "12p72", "dg2-g10": "12p71", "tgllp": "12p1"}  # device of ocloc: platform of iga64
# Devices that a family is compiled for. "plain" is what CPUs run; GPUs run its narrow form.
FAMILIES = {"common": tuple(PLATFORMS), "plain_narrow": tuple(PLATFORMS), "subgroup": tuple(PLATFORMS),
            "dpas16": ("pvc",), "dpas8": ("dg2-g10",), "plain": ()}
VERSION = 2  # of the facts below
KERNEL_OF_COMPILER = "Intel_Symbol_Table_Void_Program"
# Programs of the table: types and sizes that stand for the others.
SHOWN = (r"linear_(bf16|f8e4m3)_(plain_narrow|subgroup)_[18]|linear_f8e4m3_(bf16|f8e4m3)_dpas\d+_(1|8|16|32)|"
         r"attention_.*_bf16_128|draw_.*|rows|sample|tables_bf16|linear_inputs")
BEGIN, END = "<!-- begin: offline_gate.py -->\n", "<!-- end: offline_gate.py -->\n"


def sections(binary):
    """Sections of a 64-bit ELF file by name."""
    at, = struct.unpack_from("<Q", binary, 0x28)
    count, names = struct.unpack_from("<HH", binary, 0x3C)
    headers = [struct.unpack_from("<IIQQQQ", binary, at + 64 * i) for i in range(count)]
    text = headers[names][4]
    name = lambda offset: binary[text + offset:binary.index(0, text + offset)].decode()
    return [(name(h[0]), binary[h[4]:h[4] + h[5]]) for h in headers]


def loaded_bytes(line, lanes):
    """Bytes that a load of the newer message format reads, by its disassembly: load.ugm.d32x16t.a64."""
    match = re.search(r"load\S*\.ugm\.d(\d+)(?:u\d+)?(?:x(\d+))?(t?)", line)
    if not match:
        return 0
    return int(match[1]) // 8 * int(match[2] or 1) * (1 if match[3] else lanes)


def read_instructions(assembly):
    """[line of the text, mnemonic with its suffixes, lanes] of every instruction, and the lines of labels."""
    instructions, labels = [], {}
    for i, line in enumerate(assembly.split("\n")):
        if match := re.match(r"(L\d+):", line):
            labels[match[1]] = i
            continue
        match = re.match(r"(?:\([^)]*\))?\s+(?:\([^)]*\)\s*)?([a-z]\w*(?:\.\w+)*)\s*(?:\((\d+)\|)?", line)
        if match and "illegal" not in line:
            instructions.append((i, match[1], int(match[2] or 1), line))
    return instructions, labels


def work_of(instructions):
    """Instructions, multiply-adds (fused; of the matrix engine), bytes loaded."""
    flops = 0
    for _, name, lanes, _ in instructions:
        if name.split(".")[0] == "mad":
            flops += 2 * lanes
        if match := re.match(r"dpasw?\.(\d+)x(\d+)", name):
            # Sixteen-bit operands: two a step of the systolic array.
            flops += 2 * int(match[1]) * 2 * int(match[2]) * lanes
    return {"instructions": len(instructions), "flops": flops,
            "dpas": sum(name.startswith("dpas") for _, name, _, _ in instructions),
            "sends": sum(name.startswith("send") for _, name, _, _ in instructions),
            "bytes": sum(loaded_bytes(line, lanes) for _, _, lanes, line in instructions)}


def hot_loop(instructions, labels):
    """The work of the innermost loop that computes most; of the whole kernel without loops."""
    loops = set()
    for i, name, _, line in instructions:
        if name.split(".")[0] in ("jmpi", "goto", "while", "brc"):
            loops |= {(labels[t], i) for t in re.findall(r"\bL\d+\b", line) if labels.get(t, i) < i}
    inner = [a for a in loops if not any(b != a and a[0] <= b[0] and b[1] <= a[1] for b in loops)]
    works = [work_of([x for x in instructions if begin <= x[0] <= end]) for begin, end in inner]
    return max(works, key=lambda w: (w["flops"], w["bytes"], w["instructions"]), default=work_of(instructions))


def facts_of(source, options, device):
    """What the compiler makes of a program: {"error": text} or {"kernels": {name: facts}}."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "program.cl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(source)
        done = subprocess.run(["ocloc", "compile", "-file", path, "-device", device, "-options", options, "--format", "zebin",
                               "-output", "program", "-out_dir", folder], cwd=folder, capture_output=True, text=True, check=False)
        binaries = [name for name in os.listdir(folder) if name.endswith(".bin")]
        if done.returncode != 0 or len(binaries) != 1:
            lines = [line for line in (done.stdout + done.stderr).split("\n") if "error" in line.lower()]
            return {"error": (lines or ["ocloc made no binary"])[0].strip()[:300]}
        with open(os.path.join(folder, binaries[0]), "rb") as file:
            parts = sections(file.read())
        kernels = {}
        for name, content in parts:
            if not name.startswith(".text.") or name == ".text." + KERNEL_OF_COMPILER:
                continue
            raw = os.path.join(folder, "text.dat")
            with open(raw, "wb") as file:
                file.write(content)
            text = subprocess.run(["iga64", "-d", "-p=" + PLATFORMS[device], raw], capture_output=True, text=True, check=False).stdout
            instructions, labels = read_instructions(text)
            if len(instructions) < 3:
                return {"error": f"iga64 disassembles nothing of kernel {name[6:]}"}
            kernels[name[6:]] = {"calls": sum(n.split(".")[0] in ("call", "calla") for _, n, _, _ in instructions),
                                 "all": work_of(instructions), "hot": hot_loop(instructions, labels)}
        info = next((content.decode() for name, content in parts if name == ".ze_info"), "")
        for block in re.split(r"\n  - name:", info)[1:]:
            kernel = kernels.get(block.split("\n")[0].strip())
            number = lambda key: int((re.search(key + r":\s+(\d+)", block) or [0, 0])[1])
            # The names come again in a list of arguments.
            if kernel is None or "simd_size" not in block:
                continue
            kernel.update(simd=number("simd_size"), registers=number("grf_count"), local=number("slm_size"),
                          scratch=sum(int(s) for s in re.findall(r"type:\s+\w+\s+usage:\s+\w+\s+size:\s+(\d+)", block)))
        if not kernels or any("simd" not in k for k in kernels.values()):
            return {"error": "the binary has no kernels, or kernels that .ze_info does not describe"}
        return {"kernels": kernels}


def kept_facts(source, options, device, compiler):
    """facts_of(), from the cache where it was asked before."""
    key = hashlib.sha256("\0".join([str(VERSION), compiler, device, options, source]).encode()).hexdigest()
    path = os.path.join(CACHE, key + ".json")
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        facts = facts_of(source, options, device)
    os.makedirs(CACHE, exist_ok=True)
    with open(path + f".{os.getpid()}", "w", encoding="utf-8") as file:
        json.dump(facts, file)
    os.replace(path + f".{os.getpid()}", path)
    return facts


def faults_of(family, facts):
    """A sentence per fault of one compiled program."""
    if "error" in facts:
        return ["does not compile: " + facts["error"]]
    faults = []
    for name, kernel in facts["kernels"].items():
        if kernel["calls"]:
            faults.append(f"kernel {name} has {kernel['calls']} calls: a built-in that the compiler does not know, or code not inlined")
        if kernel["scratch"]:
            faults.append(f"kernel {name} needs {kernel['scratch']} bytes of scratch: its registers spill")
    if family.startswith("dpas") and not any(k["all"]["dpas"] for k in facts["kernels"].values()):
        faults.append(f"family {family} claims the matrix engine, no kernel has a dpas instruction")
    return faults


def compiler_version():
    """What ocloc and its compiler library are, for the cache."""
    done = subprocess.run(["dpkg-query", "-W", "intel-opencl-icd", "libigc1", "libigdfcl1", "libigc-tools"], capture_output=True, text=True, check=False)
    return done.stdout


def judge(programs, devices, jobs):
    """[(program, device, facts)] of programs {name, family, options, source} that devices run."""
    work = [(p, d) for p in programs for d in FAMILIES[p["family"]] if d in devices]
    compiler = compiler_version()
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        facts = pool.map(lambda w: kept_facts(w[0]["source"], w[0]["options"], w[1], compiler), work)
        return [(p, d, f) for (p, d), f in zip(work, facts)]


def table(results):
    """Rows of the markdown table: a kernel a line, hot loop per device."""
    rows = {}
    for program, device, facts in results:
        for name, kernel in facts.get("kernels", {}).items():
            rows.setdefault((program["name"], name), {})[device] = kernel
    lines = ["| program | kernel | device | SIMD | registers | local bytes | instructions | hot loop: instructions | loads | bytes | flops |",
             "|---|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    for (program, name), devices in sorted(rows.items()):
        for device, k in devices.items():
            hot = k["hot"]
            read = hot["bytes"] or ("-" if hot["sends"] else 0)
            lines.append(f"| {program} | {name} | {device} | {k['simd']} | {k['registers']} | {k['local']} | {k['all']['instructions']} "
                         f"| {hot['instructions']} | {hot['sends']} | {read} | {hot['flops']} |")
    return "\n".join(lines) + "\n"


def read_programs(dump):
    """The programs that dump_programs writes."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            subprocess.run([dump, folder], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise SystemExit(f"offline_gate: {dump} does not run: {error}; build the target dump_programs")
        if not os.path.exists(os.path.join(folder, "programs.json")):
            raise SystemExit(f"offline_gate: {dump} is not dump_programs: it wrote no programs.json")
        with open(os.path.join(folder, "programs.json"), encoding="utf-8") as file:
            programs = json.load(file)
        for program in programs:
            with open(os.path.join(folder, program["file"]), encoding="utf-8") as file:
                program["source"] = file.read()
    unknown = sorted({p["family"] for p in programs} - set(FAMILIES))
    if unknown or not programs:
        raise SystemExit(f"offline_gate: families {unknown} are not known here; {len(programs)} programs")
    return programs


SOUND = "__kernel void k(__global float* x) { x[get_global_id(0)] *= 2.0f; }"
PLANTS = [
    ("a sound kernel", "common", SOUND, None),
    ("a call", "common", "float unknown_builtin(float);\n__kernel void k(__global float* x) { x[0] = unknown_builtin(x[1]); }", "calls"),
    ("a spill", "common", "__kernel void k(__global float* x, int n) { float t[2048];\n"
     "for (int i = 0; i < 2048; ++i) t[i] = x[i * n];\nfor (int i = 0; i < n; ++i) x[i] = t[(int)x[i]]; }", "scratch"),
    ("no matrix engine", "dpas16", SOUND, "dpas"),
    ("an error", "common", "__kernel void k(__global float* x) { x[0] = y; }", "does not compile"),
]


def self_test():
    """Planted faults must be found, and none in a sound kernel."""
    wrong = 0
    for what, family, source, expected in PLANTS:
        for device in FAMILIES[family]:
            found = faults_of(family, facts_of(source, "-cl-std=CL1.2", device))
            good = not found if expected is None else any(expected in f for f in found)
            wrong += not good
            print(f"{what:20} {device:8} {'as expected' if good else 'WRONG'}: {'; '.join(found) or 'no fault'}")
    return 1 if wrong else 0


def write_markdown(path, results, check):
    """Puts the table between the marks of a page; with `check` only compares."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if BEGIN not in page or END not in page:
        raise SystemExit(f"offline_gate: {path} has no lines {BEGIN.strip()} and {END.strip()}")
    chosen = [r for r in results if re.fullmatch(SHOWN, r[0]["name"])]
    new = page[:page.index(BEGIN) + len(BEGIN)] + table(chosen) + page[page.index(END):]
    if check and new != page:
        print(f"{path}: the table is not what the compiler makes; run offline_gate.py with --markdown", file=sys.stderr)
        return 1
    if not check:
        with open(path, "w", encoding="utf-8") as file:
            file.write(new)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dump_programs", nargs="?", metavar="DUMP_PROGRAMS", help="the test program that writes the sources")
    parser.add_argument("--device", action="append", choices=sorted(PLATFORMS), help="compile for this one only (may be repeated)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="compilers at a time")
    parser.add_argument("--markdown", metavar="FILE", help="write the table of figures into a page")
    parser.add_argument("--check", metavar="FILE", help="compare the table of figures with that of a page")
    parser.add_argument("--self-test", action="store_true", help="plant faults and expect to find them")
    args = parser.parse_args()
    for tool, package in (("ocloc", "intel-opencl-icd"), ("iga64", "libigc-tools")):
        if not any(os.access(os.path.join(p, tool), os.X_OK) for p in os.environ.get("PATH", "").split(":")):
            print(f"offline_gate: {tool} is missing: apt-get install {package}", file=sys.stderr)
            return 4
    if args.self_test:
        return self_test()
    if args.dump_programs is None:
        parser.error("DUMP_PROGRAMS is missing")
    results = judge(read_programs(args.dump_programs), args.device or tuple(PLATFORMS), args.jobs)
    faults = [f"{p['name']} for {d} ({p['options']}): {fault}" for p, d, f in results for fault in faults_of(p["family"], f)]
    print(table(results), end="")
    for fault in faults:
        print("fault: " + fault, file=sys.stderr)
    print(f"{len(results)} programs compiled, {sum(len(f.get('kernels', {})) for _, _, f in results)} kernels, {len(faults)} faults")
    status = 1 if faults else 0
    if page := args.markdown or args.check:
        status |= write_markdown(page, results, args.markdown is None)
    return status


if __name__ == "__main__":
    sys.exit(main())
