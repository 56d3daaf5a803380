#!/usr/bin/env bash
# Runs every OpenCL kernel, and a whole model on them, with PoCL (plain kernels) and with Intel's runtime for CPUs (subgroups).
# Usage: opencl_tests.sh BUILD_FOLDER
set -euo pipefail
[ $# -eq 1 ] && [ -d "$1" ] || { echo "usage: tools/opencl_tests.sh BUILD_FOLDER" >&2; exit 2; }
build=$(realpath "$1")
cd "$(dirname "$0")/.."
for program in conformance_opencl_test conformance_opencl_narrow_test opencl_device_test opencl_model_test; do
  [ -x "$build/tests/opencl/$program" ] ||
    { echo "opencl_tests: $build/tests/opencl/$program is missing: build the target $program first" >&2; exit 4; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/pocl"
cp /etc/OpenCL/vendors/pocl.icd "$work/pocl/" ||
  { echo "opencl_tests: PoCL is missing: apt-get install pocl-opencl-icd" >&2; exit 4; }
intel=$(tools/get_opencl_runtime.sh)

# Runs a test program in as many shards as there are processors.
shards() {
  local count pids=() status=0
  count=$(nproc)
  for ((i = 0; i < count; i++)); do
    GTEST_TOTAL_SHARDS=$count GTEST_SHARD_INDEX=$i "$@" --gtest_brief=1 &
    pids+=($!)
  done
  for pid in "${pids[@]}"; do wait "$pid" || status=1; done
  return $status
}

for vendors in "$work/pocl" "$intel"; do
  export OCL_ICD_VENDORS=$vendors
  for program in conformance_opencl_test conformance_opencl_narrow_test opencl_device_test; do
    start=$SECONDS
    filter='*'
    # PoCL takes minutes to compile the barriers of draws; Intel's runtime runs them.
    [ "$vendors $program" = "$work/pocl conformance_opencl_narrow_test" ] && filter='-*SampleConformance*'
    shards "$build/tests/opencl/$program" "--gtest_filter=$filter"
    echo "== $vendors: $program $((SECONDS - start)) s"
  done
  start=$SECONDS
  "$build/tests/opencl/opencl_model_test" --gtest_brief=1
  echo "== $vendors: opencl_model_test $((SECONDS - start)) s"
done
