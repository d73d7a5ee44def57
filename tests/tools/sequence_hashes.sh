#!/usr/bin/env bash
# Compares the access sequences of the full traces with their published SHA-256. Exit code 77
# (skipped) when the traces are not there.
# Usage: sequence_hashes.sh DUMP_PROGRAM HASH_LIST TRACE_FOLDER
set -euo pipefail
dump="$1" list="$2" traces="$3"
if [[ ! -d "${traces}" ]]; then
    echo "skipped: no traces in ${traces}"
    exit 77
fi
failed=0
while read -r wanted file; do
    [[ "${wanted}" == "#" ]] && continue
    got="$("${dump}" "${traces}/${file}" | sha256sum | cut -d' ' -f1)"
    if [[ "${got}" == "${wanted}" ]]; then
        echo "ok ${file}"
    else
        echo "FAILED ${file}: ${got}, not ${wanted}"
        failed=1
    fi
done <"${list}"
exit "${failed}"
