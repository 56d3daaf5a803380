#!/usr/bin/env bash
# From nothing to an answer: installs what Octet needs, builds it, makes a small real model and FP8 forms of it, plans it and
# asks it a question. Exits non-zero unless the answer holds "Paris". May be run again at any time.
set -euo pipefail
cd "$(dirname "$0")"

models=models
export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
base=$models/SmolLM2-135M-Instruct
step() { printf '\n== %s\n' "$*"; }

step "packages"
tools/install_packages.sh build

step "build"
cmake -S . -B build/quickstart -G Ninja -DCMAKE_BUILD_TYPE=Release -DOCTET_TESTS=OFF >build-quickstart.log
cmake --build build/quickstart --target octet
rm -f build-quickstart.log
octet=build/quickstart/octet

step "model"
/usr/bin/python3 tools/get_smollm2.py "$base" --octet "$octet"  # the Python whose pip apt installs
for scheme in fp8-dynamic fp8-block fp8-static fp8-weight-only; do
  [ -d "$base-$scheme" ] && continue
  extra=()
  [ $scheme = fp8-static ] && extra=(--calibration testing/data/text/bread.txt)
  "$octet" quantize "$base" "$base-$scheme" --scheme "$scheme" "${extra[@]}"
done

step "plan"
"$octet" plan "$base-fp8-dynamic"

question='What is the capital of France?'
step "$question"
answer=$("$octet" run "$base-fp8-dynamic" --chat -p "$question" -n 40 --temperature 0)
printf '%s\n' "$answer"
case $answer in
  *Paris*) ;;
  *) echo "quickstart: expected Paris in the answer" >&2; exit 1 ;;
esac

cat <<MSG

Next:
  $octet chat $base-fp8-dynamic          a conversation
  $octet plan $base-fp8-block            which kernels run another form, and why
  $octet run --help                      every flag
  ./check.sh                             all tests
MSG
