#!/usr/bin/env bash
# The command "kvoffload trace hits" as a user runs it: results, exit codes, messages.
# Usage: trace_hits_test.sh TOOL TRACE_FOLDER   (checks over full traces are left out without it)
set -euo pipefail
tool="$(realpath "$1")" traces="${2:-}"
work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT
cd "${work}"
passed=0 failed=0

fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
}

# check NAME EXIT_CODE PATTERN ARGUMENT...: runs the tool on the file "stdin"; what it prints must
# have the pattern in it.
: >stdin
check() {
    local name="$1" wanted="$2" pattern="$3" code=0
    shift 3
    "${tool}" "$@" <stdin >out 2>err || code=$?
    if [[ "${code}" == "${wanted}" ]] && grep -Eq -- "${pattern}" out err; then
        passed=$((passed + 1))
    else
        fail "${name}: exit code ${code}, not ${wanted}, or no '${pattern}' in:"
        cat out err
    fi
}

hits() { check "$1" "$2" "$3" trace hits "${@:4}"; }

cat >small.jsonl <<'LINES'
{"timestamp": 0, "input_length": 130, "output_length": 1, "hash_ids": [1, 2, 3]}
{"timestamp": 100, "input_length": 150, "output_length": 1, "hash_ids": [1, 2, 9]}
LINES
hits "the default block size contradicts the file" 2 \
    'small.jsonl:1: 3 ids for 130 tokens; 50 to 64 would fit both lines' small.jsonl --blocks 10
hits "512 is the default" 2 '50 to 64 would fit both lines' small.jsonl --blocks 10 \
    --block-tokens 512
hits "the right block size counts 2 hits" 0 '"hits": 2,' small.jsonl --blocks 10 \
    --block-tokens 64 --json
hits "the saving is in tokens of that size" 0 '"hit_tokens": 128$' small.jsonl \
    --blocks 10 --block-tokens 64 --json
hits "a cache of one block has no hit" 0 '"hits": 0,' small.jsonl --blocks 1 \
    --block-tokens 64 --json
hits "more room than blocks is no cost" 0 '"hits": 2,' small.jsonl \
    --blocks 1000000000000 --block-tokens 64 --json
hits "a person reads the same figures" 0 \
    'hits +2 \(33.33 % of the accesses\); 2 \(33.33 %\) without' small.jsonl \
    --blocks 10 --block-tokens 64
hits "prefix counting" 0 '"hits": 2,' small.jsonl --blocks 10 --block-tokens 64 --json \
    --mode prefix

timed() {
    printf '{"timestamp": 1725000000000, "input_length": 1, "hash_ids": [1]}\n'
    printf '{%s"input_length": 1, "hash_ids": [1]}\n' "$1"
    printf '{"timestamp": 1725000001500, "input_length": 1, "hash_ids": [2]}\n'
}
timed '"timestamp": 1725000000500, ' >stdin
hits "absolute times are offsets from the first" 0 '"span_s": 1.5,' - --blocks 9 --json
hits "one hit of three" 0 '"hits": 1,' - --blocks 9 --json
timed '"timestamp": null, ' >stdin
hits "a time of null" 2 'standard input:2: timestamp is null' - --blocks 9
timed '' >stdin
hits "no time" 2 'standard input:2: timestamp is missing' - --blocks 9
timed '"timestamp": NaN, ' >stdin
hits "a time of NaN" 2 "standard input:2: .*'NaN'" - --blocks 9
timed '"timestamp": 1724999999000, ' >stdin
hits "a time before the last" 2 'standard input:2: timestamp 1724999999000 is before' - --blocks 9
[[ ! -s out ]] || fail "output beside an error"

printf 'TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97,4808,10\n' >stdin
hits "lengths without ids" 2 'no block ids; stats only' - --blocks 9
printf '# time,key\n0,A\n1,B\n2,A\n3,a\n' >stdin
hits "keys that are letters" 0 '"hits": 1,' - --blocks 9 --json
hits "three different keys" 0 '"unique_blocks": 3,' - --blocks 9 --json
hits "no lengths, no tokens" 0 '"hit_tokens": null$' - --blocks 9 --json

xz -kc small.jsonl >small.xz
gzip -c small.jsonl >small.gz
for packed in xz gz; do
    hits "packed as ${packed}" 0 '"hits": 2,' "small.${packed}" --blocks 10 --block-tokens 64 --json
    cp "small.${packed}" stdin
    hits "${packed} on standard input" 0 '"hits": 2,' - --blocks 10 --block-tokens 64 --json
    head -c -3 "small.${packed}" >stdin
    hits "${packed} cut short" 2 'standard input: offset [0-9]+: the .* data ends too early' - \
        --blocks 10 --block-tokens 64
done
: >stdin

check "help" 0 'trace' --help
check "help of the command" 0 'Example: kvoffload trace hits' trace hits --help
check "version" 0 'kvoffload [0-9]+\.[0-9]+\.[0-9]+' --version
check "no command" 2 'subcommand is required' trace
hits "no file" 2 'FILE is required' --blocks 9
hits "no size" 2 '--blocks is required' small.jsonl
for size in 0 -1 many 99999999999999999999; do
    hits "size ${size}" 2 '--blocks' small.jsonl --blocks "${size}"
done
hits "unknown policy" 2 'mru is not known; lru and arc' small.jsonl --blocks 9 --policy mru
hits "unknown mode" 2 '--mode' small.jsonl --blocks 9 --mode both
hits "unknown format" 2 '--format' small.jsonl --blocks 9 --format xml
hits "unknown option" 2 '--fast' small.jsonl --blocks 9 --fast
hits "no such file" 2 'nothing.jsonl: cannot be opened: No such file' nothing.jsonl --blocks 9
hits "a folder" 2 'cannot be read: Is a directory' "${work}" --blocks 9
hits "an empty input" 2 'standard input: no requests in it' - --blocks 9
if [[ -w /dev/full ]]; then
    code=0
    "${tool}" trace hits small.jsonl --blocks 9 --block-tokens 64 >/dev/full 2>err || code=$?
    [[ "${code}" == 1 ]] || fail "an output that takes nothing: exit code ${code}, not 1"
fi

if [[ -d "${traces}" ]]; then
    chat="${traces}/mooncake_conversation_trace.jsonl.xz"
    agents="${traces}/weka_agentic_delta.jsonl.xz"
    hits "LRU over the chat trace" 0 '"hits": 31840,' "${chat}" --policy lru --blocks 5000 --json
    hits "ARC over the chat trace" 0 '"hits": 32777,' "${chat}" --policy arc --blocks 5000 --json
    hits "prefix counting over the agents" 0 '"hits": 9718727,' "${agents}" --blocks 2000 \
        --mode prefix --json
    for lengths in "${traces}"/azure_*.csv.xz; do
        hits "Azure" 2 'no block ids; stats only' "${lengths}" --blocks 9
    done
else
    echo "left out: no full traces in '${traces}'"
fi

echo "${passed} passed, ${failed} failed"
[[ "${failed}" -eq 0 ]]
