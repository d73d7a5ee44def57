#!/usr/bin/env python3
"""Cuts the small schedules of the demo out of the public traces named in README.md of this folder.

usage: make_slices.py TRACE_FOLDER    (writes miniswe.json and conversation.json beside this file)

A schedule is a list of users; a user sends one request after the other, each as soon as the one before
is answered. A request is the list of its block ids (equal id = equal tokens, ids prefix-chained as in
the trace) and how many tokens to answer. Nothing else of the trace is kept.
"""
import json
import lzma
import pathlib
import sys
from collections import defaultdict

HERE = pathlib.Path(__file__).parent


def lines(path):
    with lzma.open(path, "rt") as file:
        for line in file:
            yield json.loads(line)


def renumber(users):
    names = {}
    return [[{"blocks": [names.setdefault(b, len(names)) for b in blocks], "answer": answer}
             for blocks, answer in user] for user in users]


def miniswe(path, sessions=3, turns=2, coarse=4, most_blocks=24):
    """Whole sessions' first turns; 4 pieces of 64 bytes make one block of 16 tokens."""
    users, before = defaultdict(list), {}
    for row in lines(path):
        ids = before.get(row["session"], [])[: row["k"]]
        for first, count in row["a"]:
            ids = ids + list(range(first, first + count))
        before[row["session"]] = ids
        user = users[row["session"]]
        blocks = ids[coarse - 1 :: coarse][:most_blocks]
        if row["session"] < sessions and len(user) < turns:
            user.append((blocks, 2 + row["output_bytes"] // 256))
    return [users[s] for s in sorted(users)]


def conversation(path, minutes=30, share=61, pick=7, n_users=3, most_requests=8, most_blocks=24):
    """A share of the conversations by root prefix: those whose second block id mod `share` is `pick`.
    A block of 512 tokens becomes one of 16."""
    chosen = []
    for row in lines(path):
        ids = row["hash_ids"][: row["input_length"] // 512]
        if row["timestamp"] > minutes * 60000:
            break
        if 2 <= len(ids) <= most_blocks and ids[1] % share == pick:
            chosen.append((ids, 2 + row["output_length"] // 128))
    chosen = chosen[:most_requests]
    return [chosen[u::n_users] for u in range(n_users)]


def main():
    source = pathlib.Path(sys.argv[1])
    made = {
        "miniswe": miniswe(source / "lmcache_agent_miniswe_delta.jsonl.xz"),
        "conversation": conversation(source / "mooncake_conversation_trace.jsonl.xz"),
    }
    for name, users in made.items():
        users = renumber([u for u in users if u])
        flat = [r for u in users for r in u]
        asked = sum(len(r["blocks"]) for r in flat)
        print(name, len(users), "users", len(flat), "requests", asked, "blocks",
              len({b for r in flat for b in r["blocks"]}), "unique",
              sum(r["answer"] for r in flat), "answer tokens")
        text = json.dumps({"name": name, "users": users}, separators=(",", ":"))
        (HERE / f"{name}.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
