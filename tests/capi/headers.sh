#!/usr/bin/env bash
# Every public header stands alone, also included twice, under each compiler and standard that is here.
set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"
work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT
warnings=(-Wall -Wextra -pedantic -Werror)
n=0

check() { # compiler, standard, language, header, further flags
    local source="${work}/one.$3"
    printf '#include <kvoffload/%s>\n#include <kvoffload/%s>\nint main(void) { return 0; }\n' "$4" "$4" >"${source}"
    "$1" "-std=$2" -fsyntax-only "${warnings[@]}" "${@:5}" -I"${root}/capi/include" -I"${root}/include" "${source}"
    n=$((n + 1))
}

for cc in gcc clang; do
    command -v "${cc}" >/dev/null || continue
    for standard in c99 c11 c17 c2x; do
        for header in "${root}"/capi/include/kvoffload/*.h; do
            check "${cc}" "${standard}" c "$(basename "${header}")" -Wstrict-prototypes
        done
    done
done
for cxx in g++ clang++; do
    command -v "${cxx}" >/dev/null || continue
    for standard in c++17 c++20; do
        for header in "${root}"/include/kvoffload/*.hpp; do
            check "${cxx}" "${standard}" cpp "$(basename "${header}")" -Wshadow -Wconversion
            check "${cxx}" "${standard}" cpp "$(basename "${header}")" -DKVO_EXCEPTIONS
        done
        check "${cxx}" "${standard}" cpp kvoffload.h
    done
done
if command -v tcc >/dev/null; then
    printf '#include <kvoffload/kvoffload.h>\nint main(void) { kvo_config_t c = KVO_CONFIG_INIT; return c.reserved; }\n' >"${work}/t.c"
    tcc -c -I"${root}/capi/include" "${work}/t.c" -o "${work}/t.o"
    n=$((n + 1))
fi
# Every INIT macro initialises its struct, in C and in C++, without a warning and with its own size.
inits() {
    printf '#include <kvoffload/kvoffload.h>\n'
    sed -n 's/^#define \(KVO_[A-Z_]*\)_INIT.*/\1/p' "${root}"/capi/include/kvoffload/*.h | while read -r name; do
        type="$(tr '[:upper:]' '[:lower:]' <<<"${name}")_t"
        printf 'int f_%s(void) { %s x = %s_INIT; return x.struct_size == sizeof x; }\n' "${type}" "${type}" "${name}"
    done
}
inits >"${work}/inits.c"
cp "${work}/inits.c" "${work}/inits.cpp"
[[ "$(grep -c sizeof "${work}/inits.c")" -ge 9 ]] || { echo "INIT macros are missing" >&2; exit 1; }
for cc in gcc clang; do
    command -v "${cc}" >/dev/null || continue
    for standard in c99 c11 c17 c2x; do
        "${cc}" "-std=${standard}" -fsyntax-only "${warnings[@]}" -Wno-missing-prototypes -I"${root}/capi/include" "${work}/inits.c"
    done
done
for cxx in g++ clang++; do
    command -v "${cxx}" >/dev/null || continue
    for standard in c++17 c++20; do
        "${cxx}" "-std=${standard}" -fsyntax-only "${warnings[@]}" -I"${root}/capi/include" "${work}/inits.cpp"
    done
done
echo "${n} headers compiled"
