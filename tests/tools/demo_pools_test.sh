#!/usr/bin/env bash
# The demo over random weights: answers are equal in all runs for several device pools, host budgets,
# policies and layouts, some of which force evictions and preemptions; and a restored block that is
# zeroed makes the comparison fail. Usage: demo_pools_test.sh KVO_DEMO DATA_FOLDER
set -euo pipefail
demo="$1" data="$2"
work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT
preempted=0 evicted=0 reused=0

sum() { awk -v row="$1" 'index($0, row) { for (i = NF - 3; i <= NF; ++i) n += $i } END { print n + 0 }' "${work}/out"; }
run() {
    if ! "${demo}" --model random:1 --data "${data}" "$@" >"${work}/out" 2>&1; then
        cat "${work}/out"
        echo "kvo-demo $* failed" >&2
        exit 1
    fi
    preempted=$((preempted + $(sum preemptions)))
    evicted=$((evicted + $(sum 'dropped before first reuse')))
    reused=$((reused + $(sum 'reused from host')))
}

run --device-blocks 36 --host-mib 6
run --device-blocks 40 --host-mib 6 --arc
run --device-blocks 40
run --device-blocks 58 --running 8 --host-mib 6
run --device-blocks 66 --running 8 --host-mib 6 --arc
run --device-blocks 67 --running 8 --host-mib 6 --layer-first
run --device-blocks 256 --running 8
echo "preemptions ${preempted}, evicted before reuse ${evicted}, tokens from host ${reused}"
[[ "${preempted}" -gt 0 && "${evicted}" -gt 0 && "${reused}" -gt 0 ]] ||
    { echo "the runs did not reach what they are for" >&2; exit 1; }

if "${demo}" --model random:1 --data "${data}" --spoil >"${work}/out" 2>&1; then
    cat "${work}/out"
    echo "a zeroed block went unnoticed" >&2
    exit 1
fi
grep -q "differ from answer token" "${work}/out"
