#!/usr/bin/env bash
# Line coverage of the layers that read what users bring: io, num, plan and text, by their own tests, the cases, the
# plans of every profile and the program's tests. Fails when one is below PERCENT. Usage: coverage.sh [PERCENT]   (default: 95)
set -euo pipefail
cd "$(dirname "$0")/.."

percent=${1:-95}
command -v gcovr >/dev/null || { echo "coverage: gcovr is missing: apt-get install gcovr" >&2; exit 4; }
build=build/coverage
targets=(io_test num_test plan_test text_test cases_test plans_test models_test integration_test)

export CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
cmake -S . -B $build -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_CXX_FLAGS="--coverage -O0" >/dev/null
cmake --build $build --target "${targets[@]}"
find $build -name '*.gcda' -delete
for layer in io num plan text; do "$build/${layer}_test" --gtest_brief=1; done
# Counters of lines take memory that the limit of CaseD14 does not leave.
"$build/tests/cases/cases_test" --gtest_brief=1 --gtest_filter=-CaseD14.LoadingTakesNoMemoryForTheWeights
"$build/tests/plans/plans_test" --gtest_brief=1
"$build/tests/models/models_test" --gtest_brief=1 --gtest_filter='FormatTable*'
"$build/tests/integration/integration_test" --gtest_brief=1

low=()
for layer in io num plan text; do
  printf '%s\n' "$layer"
  gcovr --root . --object-directory $build --filter "src/$layer/" --exclude '.*_test\.cpp' --exclude-unreachable-branches \
    --exclude-directories ".*CompilerId.*" --sort-uncovered --txt $build/$layer.txt --print-summary --fail-under-line "$percent" $build || low+=("$layer")
done
if [ ${#low[@]} -ne 0 ]; then
  echo "coverage: below $percent %: ${low[*]}; the lines are in $build/LAYER.txt" >&2
  exit 1
fi
