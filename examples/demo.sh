#!/usr/bin/env bash
# The main job: installs what is missing (Debian 12 or 13), builds, fetches the small model, and serves
# the same request schedules with and without kvoffload. Fails if any answer differs.
# Usage: examples/demo.sh [--model PATH|random:SEED] [further options of kvo-demo]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cmake/setup_debian.sh python3 python3-pip
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
cmake --preset release
cmake --build --preset release --target kvo-demo

model=()
if [[ " $* " != *" --model"* ]]; then
    if path="$(examples/fetch_model.sh)"; then
        model=(--model "${path}")
    else
        echo "Going on with random weights (--model random:1): the answers are no language then." >&2
        model=(--model random:1)
    fi
fi
exec build/release/bin/kvo-demo "${model[@]}" --data examples/data --json build/demo.json "$@"
