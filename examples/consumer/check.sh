#!/usr/bin/env bash
# Installs a build into a fresh prefix, moves the prefix, and builds the consumer against it with CMake and
# with pkg-config. Usage: check.sh BUILD_FOLDER
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT
cmake --install "$1" --prefix "${work}/first" >/dev/null
mv "${work}/first" "${work}/moved"
cmake -S "${here}" -B "${work}/build" -DCMAKE_PREFIX_PATH="${work}/moved" >/dev/null
cmake --build "${work}/build" >/dev/null
"${work}/build/consumer"
"${work}/build/consumer_static"
pc="$(dirname "$(find "${work}/moved" -name kvoffload.pc)")"
export PKG_CONFIG_PATH="${pc}" LD_LIBRARY_PATH="${pc}/.."
# shellcheck disable=SC2046
c++ -std=c++17 "${here}/consumer.cpp" -o "${work}/by_pkg_config" $(pkg-config --cflags --libs kvoffload)
"${work}/by_pkg_config"
