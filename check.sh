#!/usr/bin/env bash
# Installs, builds and runs every test of Octet. May be run again at any time. The last line is ctest's summary of all tests.
# Usage: check.sh [STAGE...]   stages: style release docs opencl sanitize threads fuzz tidy   (default: all of these), and faults
set -euo pipefail
cd "$(dirname "$0")"

jobs=$(nproc)
# Compiled objects are found again from any checkout of the same sources.
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
stages=("$@")
[ ${#stages[@]} -eq 0 ] && stages=(style release docs opencl sanitize threads fuzz tidy)
logs=build/check
mkdir -p $logs
report=()
current=

finish() {
  local status=$?
  if [ $status -ne 0 ]; then
    printf '\ncheck: stage "%s" failed; its output is above and in %s/%s.log\n' "$current" "$logs" "$current" >&2
    printf '0 passed, 1 failed\n'
  fi
  exit $status
}
trap finish EXIT

# Runs a stage with its output in a log that is shown when the stage fails.
run_stage() {
  current=$1
  local start=$SECONDS
  printf '== %s\n' "$1"
  # A shell of its own, outside any condition, so that its first failing command ends the stage.
  local status=0
  set +e
  (set -e; "stage_$1") >"$logs/$1.log" 2>&1
  status=$?
  set -e
  if [ $status -ne 0 ]; then
    tail -n 80 "$logs/$1.log" >&2
    return 1
  fi
  report+=("$(printf '%-10s %5d s' "$1" $((SECONDS - start)))")
  printf '   %d s\n' $((SECONDS - start))
}

sources() { git ls-files '*.cpp' '*.h'; }

stage_style() {
  /usr/bin/python3 tools/check_layers.py
  /usr/bin/python3 tools/compare_common.py
  sources | xargs clang-format --dry-run -Werror
}

stage_release() {
  cmake --preset release
  cmake --build --preset release -j "$jobs"
  # The Python whose pip apt installs.
  /usr/bin/python3 tools/get_smollm2.py models/SmolLM2-135M-Instruct --octet build/release/octet
  ctest --test-dir build/release -j "$jobs" --output-on-failure --no-tests=error
}

stage_docs() {
  tools/gen_docs.sh build/release/octet --check
}

# OpenCL kernels on two runtimes for CPUs, in a simulator that watches memory, and as compiled for GPUs.
stage_opencl() {
  tools/offline_gate.py --self-test
  tools/offline_gate.py build/release/tests/opencl/dump_programs --jobs "$jobs" --check docs/KERNELS-OPENCL.md
  tools/data_races.sh build/release
  tools/opencl_tests.sh build/release
}

stage_sanitize() {
  cmake --preset dev
  cmake --build --preset dev -j "$jobs"
  UBSAN_OPTIONS=print_stacktrace=1 ctest --test-dir build/dev -j "$jobs" -LE slow --output-on-failure --no-tests=error
}

stage_threads() {
  cmake --preset tsan
  cmake --build --preset tsan -j "$jobs" --target base_test engine_test conformance_test
  build/tsan/base_test
  build/tsan/engine_test
  # Every kernel with two threads; the long lists of problems show no other accesses.
  build/tsan/tests/conformance/conformance_test --gtest_filter='*Threads*:*NotFinite*-*ForAnyThreads*'
}

stage_fuzz() {
  tools/fuzz.sh 60
}

stage_tidy() {
  tools/tidy.py build/release --jobs "$jobs"
}

# That the tests find faults; asked for by name.
stage_faults() {
  tools/planted_faults.py --jobs "$jobs"
}

tools/install_packages.sh check
for stage in "${stages[@]}"; do run_stage "$stage"; done

printf '\nseconds of each stage\n'
printf '  %s\n' "${report[@]}"
printf '\nNext: ./quickstart.sh answers a question with a real model; HACKING.md says how to add a kernel, a format, a model.\n'
summary=$logs/release.log
if [ -f "$summary" ]; then
  grep -E '^[0-9]+% tests passed' "$summary" | tail -n 1
else
  printf '%d passed, 0 failed\n' ${#stages[@]}
fi
