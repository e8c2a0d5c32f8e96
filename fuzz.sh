#!/usr/bin/env bash
# Runs the native fuzz targets one after another.
#
#   ./fuzz.sh                      all of them, 10 minutes each
#   FUZZTIME=1m ./fuzz.sh          all of them, 1 minute each
#   ./fuzz.sh ledger/FuzzTxCheck   these alone
#
# Each finished target adds one line "target executions new" to the file FUZZOUT
# (default .tools/fuzz.txt): new is how many inputs were found that reach new
# code. A failing input is under the package's testdata/fuzz. It ends with code 1
# where a target failed, after all have run.
set -uo pipefail
cd "$(dirname "$0")"
time=${FUZZTIME:-10m} out=${FUZZOUT:-.tools/fuzz.txt} workers=${FUZZWORKERS:-1}
mkdir -p "$(dirname "$out")"

targets=("$@")
[ $# -gt 0 ] || mapfile -t targets < <(git grep --untracked -o '^func Fuzz[A-Za-z0-9_]*(' -- '*_test.go' | sed -E 's#/[^/]*:func #/#; s#\($##' | sort)

failed=()
n=0
for target in "${targets[@]}"; do
	n=$((n + 1))
	printf '%s %d/%d %s\n' "$(date +%H:%M:%S)" "$n" "${#targets[@]}" "$target"
	log=$(go test -run '^$' -fuzz "^${target##*/}\$" -fuzztime "$time" -fuzzminimizetime 100x -parallel "$workers" "./${target%/*}" 2>&1)
	# Before Go 1.27 a run that ends by its time may fail with nothing but this line (golang/go#75804).
	if [ $? -ne 0 ] && ! { grep -q '^    context deadline exceeded$' <<<"$log" && ! grep -qE 'panic|Failing input|_test\.go:|^fatal' <<<"$log"; }; then
		printf '%s\n' "$log" | tail -40
		failed+=("$target")
	fi
	printf '%s\n' "$log" | awk -v target="$target" '/^fuzz: elapsed.*execs:/ { gsub(",", ""); for (i = 1; i < NF; i++) { if ($i == "execs:") e = $(i + 1); if ($i == "interesting:") w = $(i + 1) } }
		END { print target, e + 0, w + 0 }' | tee -a "$out"
done
[ ${#failed[@]} -eq 0 ] || { printf 'failed: %s\n' "${failed[@]}"; exit 1; }
