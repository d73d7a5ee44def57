#!/usr/bin/env python3
"""Keys of the sequence level, computed a second time from their description alone.

Without arguments: writes key_vectors.json beside this file. With --check: says whether that file and
../capi/keys.inc hold what is computed here. Needs the xxhash module (Debian: python3-xxhash); exit code
77 when it is not there. The vectors are made up here; no other origin, same licence as the project.

The encoding is described in src/sequence/block_key.hpp.
"""
import json
import pathlib
import re
import struct
import sys

try:
    import xxhash
except ImportError:
    print("skipped: no xxhash module (Debian: python3-xxhash)")
    sys.exit(77)

LABEL = b"kvoffload sequence key 1"
SEEDS = (0x6B766F2D6B65792D, 0x9E3779B97F4A7C15)
HERE = pathlib.Path(__file__).resolve().parent


def digest(data):
    return b"".join(xxhash.xxh3_128(data, seed=seed).digest() for seed in SEEDS)


def sized(data):
    return struct.pack("<Q", len(data)) + data


def keys(case):
    block = case["block_tokens"]
    key = digest(LABEL + struct.pack("<QI", case["hash_seed"], block)
                 + sized(bytes.fromhex(case["fingerprint"])) + sized(case["namespace"].encode())
                 + sized(bytes.fromhex(case["salt"])))
    out = []
    for begin in range(0, len(case["tokens"]) // block * block, block):
        end = begin + block
        data = key + struct.pack(f"<{block}I", *case["tokens"][begin:end])
        over = [e for e in case["extras"] if e["begin"] < end and e["begin"] + e["count"] > begin]
        data += struct.pack("<I", len(over))
        for e in over:
            first, last = max(e["begin"], begin), min(e["begin"] + e["count"], end)
            content = bytes.fromhex(e["bytes"])
            data += struct.pack("<IIqIQ", first - begin, last - first, e["begin"] - begin, e["count"],
                                len(content)) + content
        key = digest(data)
        out.append(key.hex())
    return out


def case(name, block_tokens, tokens, *, seed=0, fingerprint=b"", namespace="", salt=b"", extras=()):
    return {"name": name, "block_tokens": block_tokens, "hash_seed": seed, "fingerprint": fingerprint.hex(),
            "namespace": namespace, "salt": salt.hex(), "tokens": tokens,
            "extras": [{"begin": b, "count": c, "bytes": data.hex()} for b, c, data in extras]}


def cases():
    count = list(range(1000, 1040))
    long = bytes(i * 7 % 256 for i in range(300))
    many = [(i, 1, bytes([i])) for i in range(200)]
    yield case("plain", 16, count)
    yield case("one token a block", 1, [0, 1, 0xFFFFFFFF])
    yield case("long blocks", 100, [i * i for i in range(250)])
    yield case("seed", 16, count, seed=0x0123456789ABCDEF)
    yield case("fingerprint", 16, count, fingerprint=b"llama bf16")
    yield case("namespace", 16, count, namespace="tenant \u00e9")
    yield case("salt", 16, count, salt=b"pepper")
    yield case("fields do not run into each other", 16, count, namespace="ab", salt=b"c")
    yield case("nor here", 16, count, namespace="a", salt=b"bc")
    yield case("an extra inside a block", 16, count, extras=[(20, 6, b"\1\2\3\4")])
    yield case("an extra over three blocks", 16, count, extras=[(10, 30, long)])
    yield case("two that overlap each other", 16, count, salt=b"s", extras=[(0, 100, b"adapter"), (17, 3, b"x")])
    yield case("zero bytes", 16, count, extras=[(16, 1, b"\0")])
    yield case("more than 64 in one block", 256, [5] * 256, extras=many)


def computed():
    out = []
    for one in cases():
        one["keys"] = keys(one)
        out.append(one)
    return out


def frozen_differences():
    """Lines of ../capi/keys.inc that are not what is computed here."""
    tokens = [i * i * 31 + 7 for i in range(49)]
    line = re.compile(r'\{"([^"]*)", "([^"]*)", "([^"]*)", (\d+), (true|false), (\d+),\s*"([0-9a-f]{64})"\}')
    found = line.findall((HERE.parent / "capi" / "keys.inc").read_text())
    bad = [] if found else ["keys.inc: no vectors found"]
    for name, namespace, salt, seed, extra, block, key in found:
        one = case(name, 16, tokens, seed=int(seed), fingerprint=b"model", namespace=namespace,
                   salt=salt.encode(), extras=[(20, 6, b"\1\2\3\4")] if extra == "true" else [])
        if keys(one)[int(block)] != key:
            bad.append(f"keys.inc: {name}: {keys(one)[int(block)]} computed")
    return bad, len(found)


def main():
    path = HERE / "key_vectors.json"
    text = json.dumps(computed(), separators=(",", ":")).replace("},{\"name\"", "},\n{\"name\"") + "\n"
    if sys.argv[1:] != ["--check"]:
        path.write_text(text)
        return 0
    bad, n = frozen_differences()
    if path.read_text() != text:
        bad.append("key_vectors.json differs from what is computed")
    print("\n".join(bad) or f"{n} frozen keys and {len(computed())} cases agree")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
