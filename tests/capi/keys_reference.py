#!/usr/bin/env python3
"""Compares keys of the sequence level, as the library gives them through its C interface for seeded random
input, with those that ../data/make_key_vectors.py computes from the description of the key alone.

usage: keys_reference.py PROGRAM    (capi_keys)

The input comes to the library in pieces: longer prompts, decoded tokens, tokens taken back, extras given
twice, forks. None of that may show in a key. KVO_TEST_SEED sets the seed. Exit code 77 without the xxhash
module (Debian: python3-xxhash).
"""
import json
import os
import pathlib
import subprocess
import sys
from collections import Counter

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "data"))
import make_key_vectors as reference  # noqa: E402: leaves with 77 where there is no xxhash module


def without_repeats(extras):
    """An extra given again is the same extra."""
    return list({(e["begin"], e["count"], e["bytes"]): e for e in extras}.values())


def seen_in(case, given):
    """How often input came up that must be told apart from simpler input."""
    size = case["block_tokens"]
    seen = Counter(keys=len(case["keys"]), again=given - len(case["extras"]), fork="fork" in case["name"])
    for begin in range(0, len(case["keys"]) * size, size):
        over = [e for e in case["extras"] if e["begin"] < begin + size and e["begin"] + e["count"] > begin]
        seen["blocks without extras"] += not over
        seen["blocks with more than 64 extras"] += len(over) > 64
        seen["extras from an earlier block"] += sum(e["begin"] < begin for e in over)
    return seen


def main(program):
    seed = os.environ.get("KVO_TEST_SEED", "1")
    print(f"seed {seed}")
    dumped = subprocess.run([program, "--dump", seed], stdout=subprocess.PIPE)
    if dumped.returncode != 0:
        print(f"{program} --dump {seed} ended with {dumped.returncode}")
        return 1
    seen, n_bad = Counter(), 0
    for case in map(json.loads, dumped.stdout.decode().splitlines()):
        given = len(case["extras"])
        case["extras"] = without_repeats(case["extras"])
        seen += seen_in(case, given)
        expected = reference.keys(case)
        if case["keys"] == expected:
            continue
        n_bad += 1
        pairs = list(zip(case["keys"], expected))
        at = next((i for i, (a, b) in enumerate(pairs) if a != b), len(pairs))
        print(f"{case['name']}: {len(case['keys'])} keys, {len(expected)} expected; block {at} is the first "
              f"that differs: {case['keys'][at:at + 1]}, expected {expected[at:at + 1]}")
    wanted = {"keys", "again", "fork", "blocks without extras", "blocks with more than 64 extras",
              "extras from an earlier block"}
    for name in sorted(wanted - set(+seen)):
        n_bad += 1
        print(f"the random input has no case of: {name}")
    print(f"{n_bad} failures; " + ", ".join(f"{name}: {n}" for name, n in sorted(seen.items())))
    return 1 if n_bad else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
