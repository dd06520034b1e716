"""Scores sentences by how hard they are to read: the automated readability index, a line of JSON for each."""
import json
import os
import re
import sys

for sentence in sys.stdin:
    words = re.findall(r"[A-Za-z']+", sentence)
    if not words:
        continue
    letters = sum(len(word) for word in words)
    index = 4.71 * letters / len(words) + 0.5 * len(words) - 21.43
    print(json.dumps({"index": round(index, 3), "words": len(words), "sentence": sentence.strip()}))

print(f"task {os.environ['OUTRIDER_TASK']} is done", file=sys.stderr)
