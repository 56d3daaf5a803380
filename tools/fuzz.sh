#!/usr/bin/env bash
# Builds the fuzzers and runs each of them on a copy of its corpus for an equal share of the time; fails when one finds a
# crash, a leak, an undefined operation or an input that takes 10 seconds. Usage: tools/fuzz.sh SECONDS [NAME...]
set -euo pipefail

usage() { echo "usage: tools/fuzz.sh SECONDS [NAME...]   (NAME: a file of fuzz/ without .cpp; default: all)" >&2; exit 2; }
[[ ${1:-} =~ ^[1-9][0-9]*$ ]] || usage
seconds=$1
shift
cd "$(dirname "$0")/.."
names=("$@")
if [ ${#names[@]} -eq 0 ]; then
  for source in fuzz/*.cpp; do names+=("$(basename "$source" .cpp)"); done
fi
for name in "${names[@]}"; do [ -f "fuzz/$name.cpp" ] || usage; done

cmake --preset fuzz >/dev/null
cmake --build --preset fuzz -j "$(nproc)" --target "${names[@]/#/fuzz_}"
share=$((seconds / ${#names[@]}))
[ "$share" -ge 1 ] || share=1
found=0
for name in "${names[@]}"; do
  work=build/fuzz/work/$name
  rm -rf "$work"
  mkdir -p "$work/corpus" "$work/found"
  if [ -d "fuzz/corpus/$name" ]; then cp -r "fuzz/corpus/$name/." "$work/corpus"; fi
  options=(-max_total_time="$share" -timeout=10 -rss_limit_mb=3000 -max_len=65536 -print_final_stats=1
           -artifact_prefix="$work/found/")
  if [ -f "fuzz/$name.dict" ]; then options+=(-dict="fuzz/$name.dict"); fi
  if build/fuzz/fuzz/"fuzz_$name" "${options[@]}" "$work/corpus" >"$work/log" 2>&1; then
    printf 'fuzz: %-16s %4d s, %s\n' "$name" "$share" "$(grep -o 'number_of_executed_units: [0-9]*' "$work/log")"
  else
    tail -n 60 "$work/log" >&2
    echo "fuzz: $name FAILED; the input lies in $work/found" >&2
    found=1
  fi
done
exit $found
