"""Puts the theorems and obligations that `graft verify --emit-smt` wrote to solvers that did not prove them.

    python3 recheck.py FOLDER --solver cvc5=/usr/bin/cvc5 --solver z3=venv/bin/z3 [--jobs N]

A theorem is a rule with all its cases, a file each (kind `theorem`). Sums and maxima are functions that nothing
is known of then: leaving their definitions out claims more, so that `unsat` proves it and `sat` says nothing.
`sat` of a case without sums, maxima, unknown functions and conditions for all indices is a counterexample.
The laws of sums and maxima that proofs use are put to each solver, too (laws.smt2).

Each other file of FOLDER/index.tsv is given to each solver as it stands. Where the answer to an obligation is
unknown, its questions are asked one by one: a question together with the assumptions that share symbols
with it, directly or through other assumptions. Leaving assumptions out claims more, so `unsat` proves
the question; `sat` is believed only when it is repeated with all assumptions. An obligation is agreed
when all its questions are unsat. Questions that differ only in names are asked once.

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

# How to ask each solver: about a whole file, and about one question. The counts are in the solver's
# own unit.
WAYS = {
    "cvc5": (["--incremental", "--rlimit-per=5000"], ["--rlimit-per=200000"]),
    "z3": (["rlimit=100000"], ["rlimit=4000000"]),
}
CASE_WAYS = {"cvc5": ["--rlimit-per=60000"], "z3": ["rlimit=2000000"]}
CASE_SECONDS = 10
FILE_SECONDS = 60
QUESTION_SECONDS = 10
KILLED_MOST = 3  # Questions of one file; what is left of it is unknown then.
EXPANDED_MOST = 20000  # Characters of a question with its names written out.

RECURSIVE = re.compile(r"\(define-fun-rec (\w+) \(((?:\(\w+ Int\) ?)+)\) (Real|Bool) .*\)$", re.M)
CHECK = "(check-sat)\n"
LAWS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "laws.smt2")
NAME = re.compile(r"\b[A-Za-z]\w*\b")
DECLARE = re.compile(r"\(declare-const (\w+) (Real|Int|Bool)\)$")
DEFINE = re.compile(r"\(define-fun (t\d+) \(\) (Real|Int|Bool) (.*)\)$")


class Obligation:
    """One (push) ... (pop) of a file."""

    def __init__(self, title, sorts):
        self.title = title
        self.sorts = dict(sorts)  # of the symbols
        self.functions = []  # declarations
        self.defines = {}  # name -> (sort, text)
        self.assumptions = []
        self.questions = []
        self.symbols = {}  # name of a define -> its symbols

    def symbols_of(self, text):
        found = set()
        for name in NAME.findall(text):
            if name in self.sorts:
                found.add(name)
            elif name in self.defines:
                found |= self.symbols[name]
        return found

    def define(self, name, sort, text):
        self.defines[name] = (sort, text)
        self.symbols[name] = self.symbols_of(text)


def read_obligations(path):
    """The logic and functions of a file, and its obligations."""
    head, sorts, obligations, current, title, inside = [], {}, [], None, "", False
    with open(path, encoding="ascii") as file:
        for line in file.read().split("\n"):
            if line.startswith("; "):
                title = line[2:]
            elif line == "(push 1)":
                current = Obligation(title, sorts)
            elif line == "(assert (or false":
                inside = True
            elif line == "))":
                inside = False
            elif inside:
                current.questions.append(line.strip())
            elif line.startswith("(define-fun"):
                current.define(*DEFINE.match(line).groups())
            elif line.startswith("(assert "):
                current.assumptions.append(line[len("(assert ") : -1])
            elif line == "(pop 1)":
                obligations.append(current)
                current = None
            elif line.startswith("(declare-const"):
                (sorts if current is None else current.sorts).update([DECLARE.match(line).groups()])
            elif line.startswith("(declare-fun"):
                (head if current is None else current.functions).append(line)
            elif line.startswith("(set-logic"):
                head.append(line)
            elif line and not line.startswith(("(set-", "(check-sat)")):
                raise ValueError(f"{path}: cannot make sense of: {line[:80]}")
    return head, obligations


def related_assumptions(obligation, question):
    known = obligation.symbols_of(question)
    left = [(a, obligation.symbols_of(a)) for a in obligation.assumptions]
    taken = []
    grew = True
    while grew:
        near = [a for a in left if a[1] & known]
        left = [a for a in left if not a[1] & known]
        grew = bool(near)
        for text, symbols in near:
            taken.append(text)
            known |= symbols
    return taken


def expand(obligation, text, cache):
    """Writes names of terms out; None when that gets too long."""
    parts, at = [], 0
    for match in NAME.finditer(text):
        name = match.group()
        if name in obligation.defines:
            if name not in cache:
                cache[name] = expand(obligation, obligation.defines[name][1], cache)
            if cache[name] is None:
                return None
            parts += [text[at : match.start()], cache[name]]
            at = match.end()
    parts.append(text[at:])
    whole = "".join(parts)
    return whole if len(whole) <= EXPANDED_MOST else None


def needed_defines(obligation, texts):
    """Names of the terms that the texts need, operands first."""
    needed, stack = set(), list(texts)
    while stack:
        for name in NAME.findall(stack.pop()):
            if name in obligation.defines and name not in needed:
                needed.add(name)
                stack.append(obligation.defines[name][1])
    return [name for name in obligation.defines if name in needed]


def question_file(head, obligation, question, assumptions, cache):
    """A file of its own, with symbols numbered in the order of their occurrence."""
    texts = [question] + assumptions
    expanded = [expand(obligation, t, cache) for t in texts]
    body = []
    if None not in expanded:
        texts = expanded
    else:
        for name in needed_defines(obligation, texts):
            sort, text = obligation.defines[name]
            body.append(f"(define-fun {name} () {sort} {text})")
    body += [f"(assert {t})" for t in texts]
    names = {}

    sorts = obligation.sorts

    def rename(match):
        name = match.group()
        if name in sorts:
            return names.setdefault(name, "s" + str(len(names)))
        if name in obligation.defines:
            return names.setdefault(name, "d" + str(len(names)))
        return name

    text = "\n".join(NAME.sub(rename, line) for line in body)
    symbols = [f"(declare-const {new} {sorts[old]})" for old, new in names.items() if old in sorts]
    return "\n".join(head + obligation.functions + symbols + [text, "(check-sat)", ""])


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
        return [a for a in out.split("\n") if a in ("sat", "unsat", "unknown")], int(killed)

    def from_stdin(self):
        return ["-in", "-smt2"] if self.name == "z3" else ["--lang=smt2", "-"]


class Recheck:
    """One file and one solver."""

    def __init__(self, solver, path):
        self.solver = solver
        self.head, self.obligations = read_obligations(path)
        self.path = path
        self.answers = {}  # by question file
        self.killed = 0

    def ask_question(self, text):
        if text not in self.answers and self.killed >= KILLED_MOST:
            return "unknown"
        if text not in self.answers:
            answers, killed = self.solver.ask(self.solver.ways[1], None, text, QUESTION_SECONDS)
            self.killed += killed
            self.answers[text] = answers[0] if len(answers) == 1 else "unknown"
        return self.answers[text]

    def ask_single(self, obligation, question, cache):
        some = related_assumptions(obligation, question)
        answer = self.ask_question(question_file(self.head, obligation, question, some, cache))
        if answer == "sat" and len(some) < len(obligation.assumptions):
            everything = obligation.assumptions
            return self.ask_question(question_file(self.head, obligation, question, everything, cache))
        return answer

    def ask_singles(self, obligation):
        cache = {}
        unknown = False
        for question in obligation.questions:
            answer = self.ask_single(obligation, question, cache)
            if answer == "sat":
                return "sat"
            unknown = unknown or answer != "unsat"
            if unknown:
                break
        return "unknown" if unknown else "unsat"

    def run(self):
        """(answers, titles of those that are sat)"""
        answers, killed = self.solver.ask(self.solver.ways[0], self.path, None, FILE_SECONDS)
        self.killed += killed
        answers += ["unknown"] * (len(self.obligations) - len(answers))
        if len(answers) != len(self.obligations):
            raise ValueError(f"{self.path}: more answers than obligations")
        for i, obligation in enumerate(self.obligations):
            if answers[i] == "unknown":
                answers[i] = self.ask_singles(obligation)
        sat = [o.title for o, answer in zip(self.obligations, answers) if answer == "sat"]
        return answers, sat


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
        digest = hashlib.sha256(file.read()).hexdigest()
    found = memory.get(solver.key, digest)
    if found is None and rule["kind"] == "theorem":
        memory.put(solver.key, digest, ask_case(solver, path))
    elif found is None:
        job = Recheck(solver, path)
        if len(job.obligations) != int(rule["checks"]):
            raise ValueError(f"{path}: not as many obligations as the index says")
        answers, sat = job.run()
        counts = [answers.count(a) for a in ("unsat", "sat", "unknown")]
        memory.put(solver.key, digest, counts + [job.killed, " | ".join(sat)])
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
    """How many rules are proved whole, with all their cases."""
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
    print(f"{solver.name} {solver.version}: {len(cases)} theorems ({len(theirs)} cases): {proved} proved, "
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
