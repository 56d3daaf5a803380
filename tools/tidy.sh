#!/usr/bin/env bash
# clang-tidy over every source file that is compiled; files whose preprocessed text passed before are skipped.
# Usage: tidy.sh BUILD_DIR [JOBS]
set -euo pipefail
build=$(realpath "$1")
jobs=${2:-$(nproc)}
cd "$(dirname "$0")/.."
cache=${XDG_CACHE_HOME:-$HOME/.cache}/octet/tidy
mkdir -p "$cache"
export build cache

# One file: its key is the text of the file, of every project header it reaches, and of the configuration.
check_one() {
  local file=$1 key
  key=$({ cat .clang-tidy "$file"; git ls-files -s 'src/*.h' 'testing/*.h' 'tests/*.h'; clang-tidy --version; } | sha256sum | cut -c1-40)
  [ -e "$cache/$key" ] && return 0
  clang-tidy --quiet -p "$build" --extra-arg=-Wno-unknown-warning-option "$file" 2>/dev/null || { echo "tidy: $file" >&2; return 1; }
  touch "$cache/$key"
}
export -f check_one
git ls-files 'src/*.cpp' | grep -v '\.cl$' | xargs -P "$jobs" -I{} bash -c 'check_one {}'
