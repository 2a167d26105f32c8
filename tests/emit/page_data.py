"""Checks the data of a page of `graft optimize --report` against themselves and what the command says.

    page_data.py REPORT.html [OUTCOME.json]     the last line that `graft --json optimize` printed
    page_data.py --get REPORT.html EXPRESSION   prints a Python expression over `data`
"""
import json
import re
import sys
from collections import Counter


def read(path):
    text = open(path, encoding="utf-8").read()
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found.group(1))


def check(data, outcome):
    sides = {side: [node for node in data[side] if node["kind"] == "node"]
             for side in ("before", "after")}
    kept = {side: Counter((node["op"], node["name"]) for node in nodes if node["step"] == 0)
            for side, nodes in sides.items()}
    assert kept["before"] == kept["after"], "other nodes are kept on the two sides"
    for nodes in sides.values():
        assert all(-1 <= node["step"] <= len(data["steps"]) for node in nodes)
    for side in sides:
        assert all(place < i for i, node in enumerate(data[side]) for place in node["in"])
    for number, step in enumerate(data["steps"], 1):
        assert 0 <= step["rule"] < len(data["rules"])
        assert all(0 < root < number for root in step["roots"])
    for key, side in (("costs_before", "given"), ("costs_after", "made")):
        total = sum(row["count"] * row["ns"] for row in data[key])
        assert abs(total - data[side]["ns"]) <= 1e-9 * total, f"{key}: {total}"
    if data["layout"] is not None:
        drawn = re.findall(r"^node n(\d+) ", data["layout"], re.M)
        assert len(drawn) == len(data["before"]) + len(data["after"])
    if outcome is not None:
        assert data["given"]["operators"] == outcome["operators_before"]
        assert data["made"]["operators"] == outcome["operators_after"]
        assert data["given"]["ns"] == outcome["cost_ns_before"]
        assert data["made"]["ns"] == outcome["cost_ns_after"]
        assert len(data["steps"]) == outcome["rules_applied"]


if sys.argv[1] == "--get":
    print(eval(sys.argv[3], {"data": read(sys.argv[2])}))
else:
    check(read(sys.argv[1]), json.loads(open(sys.argv[2]).read().splitlines()[-1])
          if len(sys.argv) > 2 else None)
