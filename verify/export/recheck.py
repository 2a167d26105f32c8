"""Puts the theorems and obligations that `graft verify --emit-smt` wrote to solvers that did not prove them.

    python3 recheck.py FOLDER --solver cvc5=/usr/bin/cvc5 --solver z3=venv/bin/z3 [--jobs N]

A theorem is a rule with its cases, or a sample of them, a file each (kind `theorem`). Sums and maxima are functions that nothing
is known of then: leaving their definitions out claims more, so that `unsat` proves it and `sat` says nothing.
`sat` of a case without sums, maxima, unknown functions and conditions for all indices is a counterexample.
The laws of sums and maxima that proofs use are put to each solver, too (laws.smt2).

Each other file of FOLDER/index.tsv is given to each solver as it stands, with a small limit; an obligation whose
answer is unknown then is asked once more, alone and with a larger one. It is agreed when it is unsat.

Limits are the solvers' own counts of resources, so that an answer does not depend on the machine. A
solver that does not keep to them is killed by the clock; that counts as unknown and is reported.

The figure that counts is that of theorems; obligations are what proofs at instances and Z3's answers rest on.

Finished files are remembered in FOLDER/recheck.tsv by their content, the solver's version and the limits:
a run that was interrupted goes on. Exit status: 0 when no solver says sat, 1 otherwise, 2 when something
is missing or malformed.
"""

import argparse
import hashlib
import multiprocessing.pool
import os
import re
import subprocess
import sys
import threading

# How to ask each solver: about a whole file, and about one obligation. The counts are in the solver's
# own unit.
WAYS = {
    "cvc5": (["--incremental", "--rlimit-per=5000"], ["--rlimit-per=200000"]),
    "z3": (["rlimit=100000"], ["rlimit=4000000"]),
}
CASE_WAYS = {"cvc5": ["--rlimit-per=60000"], "z3": ["rlimit=2000000"]}
CASE_SECONDS = 10
FILE_SECONDS = 60
OBLIGATION_SECONDS = 10
KILLED_MOST = 3  # Obligations of one file; what is left of it is unknown then.

RECURSIVE = re.compile(r"\(define-fun-rec (\w+) \(((?:\(\w+ Int\) ?)+)\) (Real|Bool) .*\)$", re.M)
CHECK = "(check-sat)\n"
UNREAD = re.compile(r"\(error .*(?:unknown constant|Parse Error).*")
LAWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "laws.smt2")


def read_obligations(path):
    """What stands before them in a file, and (title, text) of each: what lies between a push and its pop."""
    with open(path, encoding="ascii") as file:
        head, *blocks = file.read().split("(push 1)\n")
    titles = [text[text.rfind("\n; ") + 3 :].strip() for text in [head] + blocks[:-1]]
    return head, [(title, block.split("(pop 1)\n")[0]) for title, block in zip(titles, blocks)]


class Solver:
    def __init__(self, name, path):
        self.name = name
        self.path = path
        self.ways = WAYS[name]
        text = subprocess.run([path, "--version"], capture_output=True, text=True, check=True)
        self.version = re.search(r"(\d+\.[\d.]+\d)", text.stdout).group(1)
        ways = self.ways[0] + self.ways[1] + CASE_WAYS[name]
        self.key = f"{name} {self.version} {' '.join(ways)}"

    def ask(self, options, path, text, seconds):
        """The answers it prints, and whether it was killed."""
        command = [self.path] + options + ([path] if path else self.from_stdin())
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        killed = False
        try:
            out, _ = child.communicate(text, timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()
            out, _ = child.communicate()
            killed = True
        unread = UNREAD.search(out)
        if unread:  # z3 goes on behind what it cannot read, and answers something else.
            raise ValueError(f"{path or text.splitlines()[1]}: {self.name} cannot read it: {unread[0]}")
        return [a for a in out.split("\n") if a in ("sat", "unsat", "unknown")], int(killed)

    def from_stdin(self):
        return ["-in", "-smt2"] if self.name == "z3" else ["--lang=smt2", "-"]


def ask_obligations(solver, path, checks):
    """The answers, how many were killed, and the titles of those that are sat."""
    head, obligations = read_obligations(path)
    if len(obligations) != checks:
        raise ValueError(f"{path}: not as many obligations as the index says")
    answers, killed = solver.ask(solver.ways[0], path, None, FILE_SECONDS)
    answers += ["unknown"] * (checks - len(answers))
    if len(answers) != checks:
        raise ValueError(f"{path}: more answers than obligations")
    for i, (_, text) in enumerate(obligations):
        if answers[i] == "unknown" and killed < KILLED_MOST:
            again, late = solver.ask(solver.ways[1], None, head + text, OBLIGATION_SECONDS)
            killed += late
            answers[i] = again[0] if len(again) == 1 else "unknown"
    return answers, killed, [title for (title, _), answer in zip(obligations, answers) if answer == "sat"]


def ask_case(solver, path):
    """How often a case is: proved, sat, open; killed."""
    with open(path, encoding="ascii") as file:
        text = file.read()
    forget = lambda m: f"(declare-fun {m[1]} ({' '.join(['Int'] * m[2].count('Int'))}) {m[3]})"
    if text.count(CHECK) != 1:
        raise ValueError(f"{path}: not a theorem")
    is_whole = "(declare-fun fn_" not in text and "define-fun-rec" not in text and "(forall " not in text
    answers, killed = solver.ask(CASE_WAYS[solver.name], None, RECURSIVE.sub(forget, text), CASE_SECONDS)
    answer = answers[0] if len(answers) == 1 else "unknown"
    return [int(answer == "unsat"), int(answer == "sat" and is_whole),
            int(answer != "unsat" and not (answer == "sat" and is_whole)), killed, ""]


def read_index(folder):
    path = os.path.join(folder, "index.tsv")
    with open(path, encoding="utf-8") as file:
        lines = file.read().split("\n")
    if lines[0] != "id\tname\tproof\tfile\tchecks\tkind":
        raise ValueError(f"{path}: not an index of obligations")
    return [dict(zip(lines[0].split("\t"), line.split("\t"))) for line in lines[1:] if line]


class Memory:
    """What was found before: FOLDER/recheck.tsv, a line per solver and file."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "recheck.tsv")
        self.lock = threading.Lock()
        self.known = {}
        if os.path.exists(self.path):
            with open(self.path, encoding="utf-8") as file:
                lines = file.read().split("\n")
            for line in lines[:-1]:  # The last one has no end when the run was killed in it.
                fields = line.split("\t")
                if len(fields) == 7:
                    self.known[fields[0], fields[1]] = fields[2:]
            if lines[-1]:
                with open(self.path, "a", encoding="utf-8") as file:
                    file.write("\n")

    def get(self, key, digest):
        return self.known.get((key, digest))

    def put(self, key, digest, fields):
        fields = [str(f) for f in fields]
        with self.lock:
            self.known[key, digest] = fields
            with open(self.path, "a", encoding="utf-8") as file:
                file.write("\t".join([key, digest] + fields) + "\n")


def recheck_file(folder, solver, rule, memory):
    """unsat, sat, unknown, killed, titles of sat."""
    path = os.path.join(folder, rule["file"])
    with open(path, "rb") as file:
        text = file.read()
    digest = hashlib.sha256(text).hexdigest()
    if rule["kind"] == "theorem":
        rule["cases"] = int(re.search(rb"\n; case \d+ of (\d+)", text)[1])
    found = memory.get(solver.key, digest)
    if found is None and rule["kind"] == "theorem":
        memory.put(solver.key, digest, ask_case(solver, path))
    elif found is None:
        answers, killed, sat = ask_obligations(solver, path, int(rule["checks"]))
        counts = [answers.count(a) for a in ("unsat", "sat", "unknown")]
        memory.put(solver.key, digest, counts + [killed, " | ".join(sat)])
    found = memory.get(solver.key, digest)
    return [int(n) for n in found[:4]] + [found[4]]


def report_laws(solver, memory):
    """How many steps of the laws' proofs are unsat; returns how many are sat."""
    with open(LAWS, "rb") as file:
        text = file.read()
    digest = hashlib.sha256(text).hexdigest()
    if memory.get(solver.key, digest) is None:
        answers, killed = solver.ask(solver.ways[0], LAWS, None, FILE_SECONDS)
        unsat, sat = answers.count("unsat"), answers.count("sat")
        memory.put(solver.key, digest, [unsat, sat, text.count(CHECK.encode()) - unsat - sat, killed, ""])
    unsat, sat, unknown = [int(n) for n in memory.get(solver.key, digest)[:3]]
    print(f"{solver.name} {solver.version}: {unsat} of {unsat + sat + unknown} steps of the laws of sums and "
          "maxima proved")
    return sat


def report_theorems(solver, rules, results):
    """How many rules are proved whole, with all their cases that were written."""
    cases = {}
    for rule, r in zip(rules, results):
        if rule["kind"] == "theorem":
            cases.setdefault((rule["id"], rule["name"]), []).append((rule, r))
    notes = []
    proved = 0
    for (_, name), found in cases.items():
        left = [rule["file"] for rule, r in found if not r[0]]
        proved += not left
        notes += [f"  SAT      {name} ({rule['file']})" for rule, r in found if r[1]]
        notes += [f"  open     {name}: {len(left)} of {len(found)} cases ({left[0]} ...)"] if left else []
    theirs = [r for found in cases.values() for _, r in found]
    count = sum(found[0][0]["cases"] for found in cases.values())
    print(f"{solver.name} {solver.version}: {len(cases)} theorems ({len(theirs)} of {count} cases): {proved} proved, "
          f"{len(cases) - proved} open; {sum(r[3] for r in theirs)} killed by the clock")
    print("\n".join(notes), end="\n" if notes else "")
    return sum(r[1] for r in theirs)


def report(solver, rules, results):
    both = [(rule, r) for rule, r in zip(rules, results) if rule["kind"] != "theorem"]
    rules, results = [rule for rule, _ in both], [r for _, r in both]
    total = [sum(r[i] for r in results) for i in range(4)]
    names = {rule["id"] for rule in rules}
    agreed = len(names - {rule["id"] for rule, r in zip(rules, results) if r[1] + r[2] > 0})
    print(f"{solver.name} {solver.version}: {sum(total[:3])} obligations of {len(names)} rules: "
          f"{total[0]} unsat, {total[1]} sat, {total[2]} unknown; {agreed} rules agreed whole"
          f"; {total[3]} killed by the clock")
    for rule, r in zip(rules, results):
        if r[1] > 0:
            print(f"  SAT      {rule['name']} ({rule['file']}): {r[4]}")
    for rule, r in zip(rules, results):
        if r[2] > 0:
            print(f"  unknown  {rule['name']} ({rule['file']}): {r[2]} of {sum(r[:3])}")
    return total[1]


def parse_arguments():
    parser = argparse.ArgumentParser(description="recheck obligations with other solvers")
    parser.add_argument("folder")
    parser.add_argument("--solver", action="append", default=[], metavar="NAME=PATH")
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    rules = read_index(arguments.folder)
    memory = Memory(arguments.folder)
    disagreements = 0
    for text in arguments.solver:
        solver = Solver(*text.split("=", 1))
        with multiprocessing.pool.ThreadPool(arguments.jobs) as pool:
            results = []
            work = lambda rule: recheck_file(arguments.folder, solver, rule, memory)
            for result in pool.imap(work, rules):
                results.append(result)
                if len(results) % 50 == 0:
                    print(f"recheck: {solver.name}: {len(results)} of {len(rules)} files", file=sys.stderr)
        disagreements += report_laws(solver, memory)
        disagreements += report_theorems(solver, rules, results) + report(solver, rules, results)
    return 1 if disagreements > 0 else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        print(f"recheck: {error}", file=sys.stderr)
        sys.exit(2)
