#!/usr/bin/env bash
# Installs what is missing (Debian 12 or 13), builds everything and runs every test through ctest.
# No GPU and no CUDA Toolkit needed. Usage: tests/run.sh [CTEST ARGUMENT...]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

cmake/setup_debian.sh
export CMAKE_BUILD_PARALLEL_LEVEL="${CMAKE_BUILD_PARALLEL_LEVEL:-$(nproc)}"
cmake --preset release
cmake --build --preset release
ctest --preset release --output-on-failure "$@"
