#!/usr/bin/env python3
"""Plants faults, one at a time, into a copy of the sources and expects the test suite to fail.

    planted_faults.py [--list] [--only NAME] [--jobs N]

A fault is a small change of one file, such as a programmer could make. The copy lives in build/faults/tree; of the suite, the
test programs that a fault names are built and run until one fails. Exit status 1 when a fault is not found, or when a
change no longer applies to the source it names.
"""

import argparse
import dataclasses
import os
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TREE = os.path.join(ROOT, "build", "faults", "tree")
BUILD = os.path.join(TREE, "build", "release")  # where it lies in every checkout: compiled objects are found again
PROGRAMS = {
    "conformance": "tests/conformance/conformance_test",
    "cases": "tests/cases/cases_test",
    "models": "tests/models/models_test",
    "opencl": "tests/opencl/conformance_opencl_test",
    "opencl_narrow": "tests/opencl/conformance_opencl_narrow_test",
}
TARGETS = {"opencl": "conformance_opencl_test", "opencl_narrow": "conformance_opencl_narrow_test"}  # others: NAME_test
POCL = "/etc/OpenCL/vendors/pocl.icd"


@dataclasses.dataclass
class Fault:
    """One change and the test programs ("name" or "name:filter") of which one must fail."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple


FAULTS = [
    Fault("scale-swapped", "src/op/linear.cpp",
          "  const std::vector<float> scales =\n"
          "      is_f8(view.spec.dtype) ? scale_grid(view, problem.weight.tile) : std::vector<float>{};\n",
          "  std::vector<float> scales =\n"
          "      is_f8(view.spec.dtype) ? scale_grid(view, problem.weight.tile) : std::vector<float>{};\n"
          "  if (scales.size() > 2) std::swap(scales[1], scales[2]);\n",
          ("conformance:*Linear*", "cases:CaseB*")),
    Fault("last-column-lost", "src/kernels/cpu/linear_panel_avx2.h",
          "decode_part<F>(w + piece.whole, piece.rest, watch)", "decode_part<F>(w + piece.whole, piece.rest - 1, watch)",
          ("conformance:*Linear*",)),
    Fault("block-offset-off-by-one", "src/num/tensor.cpp",
          "(cols.begin + tile.first_col) % tile.cols", "(cols.begin + tile.first_col + 1) % tile.cols",
          ("num_test",)),
    Fault("subnormals-flushed", "src/kernels/cpu/f8_avx2.h",
          "    const __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));\n    watch",
          "    __m256i codes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));\n"
          "    codes = _mm256_andnot_si256(_mm256_cmpeq_epi8(_mm256_and_si256(codes, _mm256_set1_epi8(0x78)),\n"
          "                                                  _mm256_setzero_si256()), codes);\n    watch",
          ("conformance:*Linear*:*Code*",)),
    Fault("causal-mask-off-by-one", "src/kernels/cpu/attention_work.h",
          "const int64_t end = span.context + row - span.row_begin + 1;",
          "const int64_t end = span.context + row - span.row_begin + (row == span.row_begin ? 1 : 0);",
          ("conformance:*Attention*",)),
    Fault("window-off-by-one", "src/kernels/cpu/attention_work.h",
          "std::max<int64_t>(0, end - args_.window)", "std::max<int64_t>(0, end - args_.window - 1)",
          ("conformance:*Attention*",)),
    Fault("rope-position-off-by-one", "src/engine/batch_builder.cpp",
          "batch.positions.push_back(static_cast<int32_t>(position));",
          "batch.positions.push_back(static_cast<int32_t>(position + (s.computed > 0 ? 1 : 0)));",
          ("engine_test",)),
    Fault("kv-block-of-another-sequence", "src/engine/batch_builder.cpp",
          "const auto blocks = parts[i].sequence->blocks.blocks();", "const auto blocks = parts[0].sequence->blocks.blocks();",
          ("engine_test",)),
    Fault("wrong-tie-break-in-merges", "src/text/bpe.cpp",
          "    const size_t best = static_cast<size_t>(std::min_element(ranks, ranks + length - 1) - ranks);\n",
          "    auto best = static_cast<size_t>(std::min_element(ranks, ranks + length - 1) - ranks);\n"
          "    for (size_t i = best + 1; i + 1 < length; ++i) best = ranks[i] == ranks[best] ? i : best;\n",
          ("text_test:*Bpe*:*Golden*",)),
    Fault("row-of-a-ragged-block-dropped", "src/kernels/cpu/linear_run_avx2.h",
          "const int64_t end = split_begin(problem.n, thread + 1, plan.threads);",
          "const int64_t end = split_begin(problem.n, thread + 1, plan.threads) -\n"
          "                        (thread + 1 == plan.threads && problem.n % 4 != 0 ? 1 : 0);",
          ("conformance:*Linear*",)),
    Fault("no-saturation", "src/num/f8.cpp", "std::fmin(std::fabs(value), max)", "std::fmin(std::fabs(value), 2 * max)", ("num_test",)),
    Fault("static-scale-lost", "src/model/decoder.cpp",
          "is_static ? layer.weight.input_scale : work.code_scales", "is_static ? nullptr : work.code_scales",
          ("cases:CaseB14*:CaseB08*", "models:*TinyModel*")),
    Fault("norm-without-epsilon", "src/kernels/cpu/norm_avx2.cpp",
          "std::sqrt(mean + double{args.epsilon})", "std::sqrt(mean)", ("conformance:*Norm*",)),
    Fault("wrong-fused-part", "src/io/linear_record.cpp",
          "slice(record.view, {part.first_row, part.first_row + n}", "slice(record.view, {part.stored_rows - n, part.stored_rows}",
          ("cases:CaseB06*:CaseA04*",)),
    Fault("opencl-missing-barrier", "src/kernels/opencl/lanes.cl",
          "  shared[LV_LANE] = v;\n  barrier(CLK_LOCAL_MEM_FENCE);\n  return vload16(0, shared);",
          "  shared[LV_LANE] = v;\n  return vload16(0, shared);",
          ("opencl_narrow:*Attention*",)),
    Fault("opencl-lane-off-by-one", "src/kernels/opencl/lanes.cl",
          "#define LV_ADD(t, lane, value) t += LV_LANE == (lane) ? (value) : 0.0f",
          "#define LV_ADD(t, lane, value) t += LV_LANE == (lane) + 1 ? (value) : 0.0f",
          ("opencl:*Attention*",)),
    Fault("opencl-engine-lane-off-by-one", "src/kernels/opencl/linear_dpas.cl",
          "  const int i = k + LV_LANE;\n", "  const int i = k + LV_LANE + 1;\n",
          ("opencl:*Linear*dpas16*",)),
    Fault("opencl-scale-of-the-wrong-block", "src/kernels/opencl/codes.cl",
          "rows.first = (uint)((n + first) / tile) * cols;", "rows.first = (uint)((n + LV_LANES - 1 + first) / tile) * cols;",
          ("opencl:*Linear*",)),
    Fault("opencl-scale-of-the-wrong-column", "src/kernels/opencl/linear_f8.cl",
          "min(k_size, (col + 1) * tile_cols - first_col)", "min(k_size, (col + 1) * tile_cols)",
          ("opencl:*Linear*",)),
]


def copy_tree():
    """Brings the copy up to date, so that only what changed is newer."""
    listing = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    names = [name for name in listing.split("\0") if name and os.path.exists(os.path.join(ROOT, name))]
    for name in names:
        source, target = os.path.join(ROOT, name), os.path.join(TREE, name)
        with open(source, "rb") as file:
            content = file.read()
        if os.path.exists(target):
            with open(target, "rb") as file:
                if file.read() == content:
                    continue
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(content)
        shutil.copymode(source, target)
    # What was deleted or renamed since; the build lies there too.
    known = set(names)
    for folder, folders, files in os.walk(TREE):
        if folder == TREE and "build" in folders:
            folders.remove("build")
        for name in files:
            path = os.path.join(folder, name)
            if os.path.relpath(path, TREE) not in known:
                os.remove(path)


def build(targets, jobs):
    """Builds test programs of the copy; the output is shown when that fails."""
    done = subprocess.run(["ninja", "-C", BUILD, "-j", str(jobs), *targets], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"the copy does not build:\n{done.stdout[-4000:]}")


def target_of(name):
    """What the build calls a test program."""
    return TARGETS.get(name, name + "_test" if name in PROGRAMS else name)


def opencl_vendors(name):
    """The drivers that an OpenCL program runs on: subgroups need Intel's, plain kernels run with PoCL."""
    if name == "opencl":
        return subprocess.run([os.path.join(ROOT, "tools", "get_opencl_runtime.sh")], check=True, capture_output=True, text=True).stdout.strip()
    folder = os.path.join(ROOT, "build", "faults", "vendors")
    os.makedirs(folder, exist_ok=True)
    shutil.copy(POCL, folder)
    return folder


def fails(test):
    """True when a test program, or the part of it that a filter names, fails."""
    name, _, pattern = test.partition(":")
    command = [os.path.join(BUILD, PROGRAMS.get(name, name)), "--gtest_brief=1"]
    environment = dict(os.environ)
    if name in TARGETS:
        environment["OCL_ICD_VENDORS"] = opencl_vendors(name)
    if pattern:
        command.append(f"--gtest_filter={pattern}")
    done = subprocess.run(command, cwd=TREE, capture_output=True, text=True, env=environment)
    if "0 tests ran" in done.stdout.replace("from 0 test suites ", ""):
        raise SystemExit(f"{test}: no such tests")
    return done.returncode != 0


def find(fault, jobs):
    """Plants one fault and says whether a test saw it."""
    path = os.path.join(TREE, fault.file)
    with open(path, encoding="utf-8") as file:
        sound = file.read()
    if sound.count(fault.old) != 1:
        raise SystemExit(f"{fault.name}: {fault.file} has {sound.count(fault.old)} places like {fault.old!r}, expected 1")
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(sound.replace(fault.old, fault.new))
        build(sorted({target_of(test.partition(":")[0]) for test in fault.tests}), jobs)
        return next((test for test in fault.tests if fails(test)), None)
    finally:
        with open(path, "w", encoding="utf-8") as file:
            file.write(sound)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="name the faults and do nothing")
    parser.add_argument("--only", metavar="NAME", help="plant this one")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="compilers at a time")
    args = parser.parse_args()
    faults = [fault for fault in FAULTS if args.only in (None, fault.name)]
    if not faults:
        parser.error(f"no fault is called {args.only}")
    if args.list:
        for fault in faults:
            print(f"{fault.name:32} {fault.file}")
        return 0
    os.environ["CCACHE_BASEDIR"] = TREE
    os.environ["CCACHE_NOHASHDIR"] = "1"
    copy_tree()
    subprocess.run(["cmake", "--preset", "release"], cwd=TREE, check=True, capture_output=True)
    missed = []
    for fault in faults:
        start = time.monotonic()
        seen = find(fault, args.jobs)
        print(f"{fault.name:32} {'found by ' + seen if seen else 'NOT FOUND':40} {time.monotonic() - start:5.0f} s", flush=True)
        if not seen:
            missed.append(fault.name)
    print(f"{len(faults) - len(missed)} of {len(faults)} planted faults found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
