#!/usr/bin/env bash
# Runs the plain OpenCL kernels, in both forms, in the simulator Oclgrind, which reports data races and accesses outside of
# memory. Small models hold every operation. A planted race must be found. Usage: data_races.sh BUILD_FOLDER
set -euo pipefail
[ $# -eq 1 ] && [ -d "$1" ] || { echo "usage: tools/data_races.sh BUILD_FOLDER" >&2; exit 2; }
build=$(realpath "$1")/tests/opencl
[ -e "$build/oclgrind/libOpenCL.so" ] ||
  { echo "data_races: Oclgrind was missing when $1 was configured: apt-get install oclgrind, then cmake --preset release" >&2; exit 4; }
[ -e "$build/oclgrind/libOpenCL.so.1" ] && [ -x "$build/small_forwards" ] ||
  { echo "data_races: build the targets small_forwards and oclgrind_loader first" >&2; exit 4; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Runs small_forwards in the simulator; what it reports is in $work/WHAT.log.
simulate() {
  LD_LIBRARY_PATH=$build/oclgrind TMPDIR=$work OCLGRIND_DATA_RACES=1 OCLGRIND_LOG=$work/$1.log "$build/small_forwards" "$1" \
    >"$work/$1.out"
  grep -q 'on "Oclgrind' "$work/$1.out" || { echo "data_races: the simulator was not used" >&2; cat "$work/$1.out" >&2; exit 4; }
  touch "$work/$1.log"
}

simulate race
grep -qi 'race' "$work/race.log" || { echo "data_races: the planted race was not found" >&2; exit 1; }
status=0
for form in plain narrow; do
  start=$SECONDS
  simulate "$form"
  tail -n +2 "$work/$form.out" | sed "s/^/$form, /"
  if [ -s "$work/$form.log" ]; then
    echo "data_races: the simulator reports about the $form form:" >&2
    head -n 60 "$work/$form.log" >&2
    status=1
  fi
  echo "$form: $((SECONDS - start)) s"
done
exit $status
