#!/usr/bin/env python3
"""Makes assistant.json: the document assistant, tokenised once for SmolLM2-135M-Instruct.

usage: make_assistant.py PATH_OF_kvo-demo MODEL.gguf

Texts come from assistant/*.txt; the delivery notes that are scanned only once are made up by a fixed rule.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
GOODS = ["copper pipe", "paint", "door hinges", "garden soil", "glass panes", "screws", "roof tiles", "sand paper"]
PLACES = ["north yard", "school", "harbour office", "library", "greenhouse", "town hall"]
SYSTEM = "You answer questions about the document below in one short sentence."


def note(number):
    """A delivery note nobody asks for a second time."""
    lines = [f"Delivery note {4100 + 37 * number} for the {PLACES[number % len(PLACES)]}."]
    for i in range(14):
        goods = GOODS[(number * 5 + i * 3) % len(GOODS)]
        lines.append(f"Line {i + 1}: {3 + (number * 7 + i * 11) % 40} boxes of {goods}, "
                     f"{5 + (number * 13 + i * 17) % 90} kilograms, checked by counter {1 + (number + i) % 9}.")
    return "\n".join(lines)


def main():
    texts, users, number = [], [[], []], 0
    documents = {}
    for name in ("library", "lighthouse", "greenhouse"):
        documents[name] = len(texts)
        text = (HERE / "assistant" / f"{name}.txt").read_text().strip()
        texts.append(f"<|im_start|>system\n{SYSTEM}\n\n{text}<|im_end|>\n")
    for line in (HERE / "assistant" / "questions.txt").read_text().splitlines():
        if line.startswith("#") or not line.strip():
            continue
        where, question = (part.strip() for part in line.split("|"))
        if where == "upload":
            part = len(texts)
            texts.append(f"<|im_start|>system\n{SYSTEM}\n\n{note(number)}<|im_end|>\n")
            number += 1
        else:
            part = documents[where]
        texts.append(f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n")
        users[sum(map(len, users)) % 2].append(
            {"parts": [part, len(texts) - 1], "answer": 20, "question": f"{where}: {question}"})
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump({"name": "assistant", "texts": texts, "users": users}, file)
        file.flush()
        made = subprocess.run([sys.argv[1], "tokenise", "--model", sys.argv[2], "--texts", file.name],
                              check=True, capture_output=True, text=True).stdout
    (HERE / "assistant.json").write_text(json.dumps(json.loads(made), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
