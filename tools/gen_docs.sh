#!/usr/bin/env bash
# Writes the pages that are made from the program, or with --check fails when one of them is stale.
# Usage: gen_docs.sh OCTET [--check]
set -euo pipefail
octet=$(realpath "$1")
mode=${2:-}
cd "$(dirname "$0")/.."

made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
"$octet" kernels --markdown >"$made/KERNELS.md"
"$octet" man --markdown >"$made/CLI.md"
"$octet" man --formats >"$made/table.md"
# docs/FORMATS.md is written by hand but for the table between its two marks.
awk -v table="$made/table.md" '
  /<!-- table: begin -->/ { print; while ((getline line < table) > 0) print line; skip = 1; next }
  /<!-- table: end -->/ { skip = 0 }
  !skip' docs/FORMATS.md >"$made/FORMATS.md"

status=0
for page in KERNELS CLI FORMATS; do
  if [ "$mode" != --check ]; then
    cp "$made/$page.md" "docs/$page.md"
  elif ! diff -u "docs/$page.md" "$made/$page.md"; then
    echo "docs/$page.md is stale: run tools/gen_docs.sh $1" >&2
    status=1
  fi
done
exit $status
