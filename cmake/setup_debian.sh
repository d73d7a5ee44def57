#!/usr/bin/env bash
# Makes sure that what the build needs is installed. On Debian 12 and 13 it installs what is missing
# with apt, as root or through sudo, and touches nothing when all is there. Elsewhere it names the
# missing packages and stops with exit code 2, or goes on when none is missing.
# Usage: cmake/setup_debian.sh [PACKAGE...]   (Debian packages wanted on top of the usual ones)
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config libfmt-dev nlohmann-json3-dev libxxhash-dev catch2
    libbenchmark-dev libcli11-dev libeigen3-dev liblzma-dev zlib1g-dev xz-utils
    python3 python3-xxhash "$@")

# A command or header that shows a package is there even without dpkg.
probe_of() {
    case "$1" in
        g++ | cmake | pkg-config) echo "$1" ;;
        ninja-build) echo ninja ;;
        xz-utils) echo xz ;;
        python3 | python3-*) echo python3 ;;
        libfmt-dev) echo fmt/format.h ;;
        nlohmann-json3-dev) echo nlohmann/json.hpp ;;
        libxxhash-dev) echo xxhash.h ;;
        catch2) echo catch2 ;;
        libbenchmark-dev) echo benchmark/benchmark.h ;;
        libcli11-dev) echo CLI/CLI.hpp ;;
        libeigen3-dev) echo eigen3/Eigen/Core ;;
        liblzma-dev) echo lzma.h ;;
        zlib1g-dev) echo zlib.h ;;
        *) echo "$1" ;;
    esac
}

is_installed() {
    if command -v dpkg-query >/dev/null; then
        [[ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]] && return 0
    fi
    [[ "${debian}" == yes ]] && return 1
    local probe
    probe="$(probe_of "$1")"
    command -v "${probe}" >/dev/null && return 0
    [[ -e "/usr/include/${probe}" || -e "/usr/local/include/${probe}" ]]
}

# apt waits for dpkg's own lock, but not for the one on its package lists.
apt_retry() {
    local attempt
    for attempt in 1 2 3 4 5; do
        "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get \
            -o DPkg::Lock::Timeout=300 "$@" </dev/null && return 0
        echo "apt-get $1 failed (attempt ${attempt} of 5)" >&2
        sleep $((attempt * 5))
    done
    return 1
}

debian=no
distribution="an unknown system"
if [[ -r /etc/os-release ]]; then
    # shellcheck disable=SC1091
    distribution="$(. /etc/os-release && echo "${PRETTY_NAME:-${ID:-an unknown system}}")"
    # shellcheck disable=SC1091
    case "$(. /etc/os-release && echo "${ID:-} ${VERSION_ID:-}")" in
        "debian 12" | "debian 13") debian=yes ;;
    esac
fi

missing=()
for package in "${packages[@]}"; do
    is_installed "${package}" || missing+=("${package}")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

if [[ "${debian}" != yes ]]; then
    echo "This script installs packages on Debian 12 and 13 only; this is ${distribution}." >&2
    echo "Missing here, by their Debian names: ${missing[*]}" >&2
    exit 2
fi
as_root=()
if [[ "$(id -u)" -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
        echo "Missing packages, and neither root nor sudo to install them. As root, run:" >&2
        echo "  apt-get install ${missing[*]}" >&2
        exit 2
    fi
    as_root=(sudo)
fi
echo "Installing: ${missing[*]}"
apt_retry update -qq
apt_retry install -y -qq --no-install-recommends "${missing[@]}"
