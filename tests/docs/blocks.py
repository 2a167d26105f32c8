"""Runs what the pages show, and compares what they say comes out. Prints TAP.

    python3 tests/docs/blocks.py GRAFT PAGE...

A fenced block in one of the languages below has a comment on the line before it:

    <!-- run -->                  its commands run, one after the other, in a shell that the page's
                                  blocks share; what they print is compared
    <!-- run in the checkout -->  the same, in the root of the sources
    <!-- file NAME -->            it is the content of a file of this name in the shell's folder
    <!-- valid: why not run -->   targets of make and commands and options of graft exist
    <!-- shown: why not run -->   nothing is checked

In `console` blocks commands begin with "$ ", and what follows is their output; an `sh` block has
commands only, and each of them must succeed. A line "..." in an output stands for any lines, " ..."
at the end of a line for its rest. Times and runs of blanks are not compared, nor is what the program
tells on its way (lines "graft: ..." but for errors, which come last).
"""
import glob
import os
import re
import shlex
import subprocess
import sys
import tempfile

CHECKED = {"sh", "console", "c", "yaml", "python"}
CHECKOUT = os.getcwd()


def blocks(page):
    """Yields (line, mark, language, text) of each fenced block."""
    lines = open(page, encoding="utf-8").read().split("\n")
    at = 0
    while at < len(lines):
        fence = re.fullmatch(r"```(\w*)", lines[at].strip())
        if not fence:
            at += 1
            continue
        above = re.fullmatch(r"<!-- (.*) -->", lines[at - 1].strip()) if at > 0 else None
        end = lines.index("```", at + 1)
        yield at + 1, above and above.group(1), fence.group(1), "\n".join(lines[at + 1 : end])
        at = end + 1


class Shell:
    """One sh for a page, so that `cd` and `export` hold on."""

    def __init__(self, folder, environment):
        self.errors = os.path.join(folder, "errors")
        self.status = 0
        self.process = subprocess.Popen(
            ["sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            cwd=folder, env=environment, text=True)

    def run(self, command):
        """Returns what was printed, errors last, and the exit status."""
        self.process.stdin.write(f"(exit {self.status})\n{{ {command}\n}} 2> {self.errors} < /dev/null\nprintf '\\001%d\\n' $?\n")
        self.process.stdin.flush()
        text = ""
        for line in self.process.stdout:
            before, mark, status = line.partition("\001")
            text += before
            if mark:
                self.status = int(status)
                break
        else:
            return text, 127
        told = open(self.errors, encoding="utf-8").read().split("\n")
        told = [line for line in told if not re.match(r"graft: (?!error: )", line)]
        return text + "\n".join(told), self.status


def comparable(line):
    if "predicted time" not in line:
        line = re.sub(r"\d+(\.\d+)? (ms|s)\b", "TIME", line)
    return re.sub(r"\s+", " ", line).strip()


def differs(shown, printed):
    """Nothing, or what to say."""
    pattern = ""
    for line in shown:
        if line.strip() == "...":
            pattern += r"(?:.*\n)*?"
        elif line.endswith(" ..."):
            pattern += re.escape(comparable(line[:-3])) + r".*\n"
        else:
            pattern += re.escape(comparable(line)) + r"\n"
    got = [comparable(line) for line in printed.split("\n")]
    while got and not got[-1]:
        got.pop()
    if re.fullmatch(pattern, "".join(line + "\n" for line in got)):
        return None
    return "the page shows\n" + "\n".join(shown) + "\nand it prints\n" + printed


def commands(text):
    """Of a console block: (command, shown output)."""
    found = []
    for line in text.split("\n"):
        if line.startswith("$ "):
            found.append([line[2:], []])
        elif found and found[-1][0].endswith("\\") and not found[-1][1]:
            found[-1][0] += "\n" + line
        elif found:
            found[-1][1].append(line)
    for command, shown in found:
        while shown and not shown[-1].strip():
            shown.pop()
        yield command, shown


def run_block(shell, language, text, in_checkout):
    back = ""
    if in_checkout:
        back, _ = shell.run("pwd")
        shell.run("cd " + shlex.quote(CHECKOUT))
    wrong = None
    if language == "console":
        for command, shown in commands(text):
            printed, _ = shell.run(command)
            wrong = wrong or differs(shown, printed)
    else:
        for command in re.sub(r"\\\n", " ", text).split("\n"):
            printed, status = shell.run(command) if command.strip() else ("", 0)
            if status != 0:
                wrong = wrong or f"exit status {status}: {command}\n{printed}"
    if in_checkout:
        shell.run("cd " + shlex.quote(back.strip()))
    return wrong


def invalid_graft(graft, words):
    helped = None
    for count in (2, 1):
        told = subprocess.run([graft, "help", *words[:count]], capture_output=True, text=True)
        if told.returncode == 0:
            helped = told.stdout
            break
    everywhere = subprocess.run([graft, "help"], capture_output=True, text=True).stdout
    if not words or words[0].startswith("-"):
        return None
    if helped is None:
        return "no such command"
    unknown = [w for w in words if w.startswith("--") and w.partition("=")[0] + " " not in
               (helped + everywhere).replace("\n", " ")]
    return f"no such option: {unknown[0]}" if unknown else None


def invalid(graft, language, text):
    """The first command of a block that is none; of Python, whether the module has what is called."""
    if language == "python":
        compile(text, "block", "exec")
        with open("packaging/python/graft/__init__.py", encoding="utf-8") as module:
            offered = module.read()
        lacking = [name for name in re.findall(r"\bgraft\.(\w+)\(", text) if f"def {name}(" not in offered]
        return f"graft.{lacking[0]}: not in the module" if lacking else None
    if language == "console":
        text = "\n".join(command for command, _ in commands(text))
    text = re.sub(r"\\\n", " ", text)
    if subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True).returncode:
        return "no shell text"
    for command in re.split(r"\n|&&|\|", text):
        words = shlex.split(command, comments=True)
        wrong = None
        if words and words[0] == "make":
            done = subprocess.run(["make", "-n", *words[1:]], cwd=CHECKOUT, capture_output=True, text=True)
            wrong = done.stderr if done.returncode else None
        elif words and os.path.basename(words[0]) == "graft":
            wrong = invalid_graft(graft, words[1:])
        if wrong:
            return f"{command.strip()}: {wrong}"
    return None


def environment_of(graft, home):
    """A user's: an own home, the program installed there, and `make` of the build under test."""
    binaries = os.path.join(home, ".bin")
    os.makedirs(binaries)
    build = os.path.dirname(graft) # As it was given: with another path everything would be compiled anew.
    with open(os.path.join(binaries, "make"), "w", encoding="utf-8") as made:
        made.write(f'#!/bin/sh\nPATH=${{PATH#{binaries}:}}\nexec make --no-print-directory -s OUT="{build}" "$@"\n')
    os.chmod(os.path.join(binaries, "make"), 0o755)
    drop = ("GRAFT", "XDG_", "MAKE", "MFLAGS", "OUT", "MODE", "ONLY")
    variables = {k: v for k, v in os.environ.items() if not k.startswith(drop)}
    variables.update(HOME=home, LC_ALL="C.UTF-8", PATH=f"{binaries}:{os.environ['PATH']}")
    return variables


def check(graft, shell, folder, mark, language, text):
    if mark is None:
        return "no comment says whether it is run"
    verb, _, rest = mark.partition(" ")
    if mark in ("run", "run in the checkout"):
        return run_block(shell, language, text, mark != "run")
    if verb == "file":
        where = shell.run("pwd")[0].strip()
        with open(os.path.join(where, rest), "w", encoding="utf-8") as made:
            made.write(text + "\n")
        return None
    if verb == "valid:":
        return invalid(graft, language, text)
    return None if verb == "shown:" else f"unknown comment: {mark}"


def anchors(page):
    """Of headings, as GitHub makes them."""
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"(?ms)^```.*?^```$", "", file.read())
    heads = re.findall(r"(?m)^#+ (.*)$", text)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def dead_links(page):
    """Links of a page to files and headings that are not there."""
    with open(page, encoding="utf-8") as file:
        text = re.sub(r"(?ms)^```.*?^```$", "", file.read())
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        path = os.path.normpath(os.path.join(os.path.dirname(page), path)) if path else page
        if not os.path.exists(path) or (anchor and anchor not in anchors(path)):
            yield target


def main():
    graft, pages = sys.argv[1], sys.argv[2:]
    count = failed = 0
    with tempfile.TemporaryDirectory(prefix="graft-docs-") as top:
        for page in pages:
            home = os.path.join(top, os.path.basename(page))
            folder = os.path.join(home, "work")
            os.makedirs(folder)
            shell = Shell(folder, environment_of(graft, home))
            if os.path.basename(page) != "tour.md":  # The tour installs; the others begin after it.
                shell.run(f"cd {shlex.quote(CHECKOUT)} && make install PREFIX=$HOME/.local; cd -")
                shell.run("export PATH=$HOME/.local/bin:$PATH PKG_CONFIG_PATH=$HOME/.local/share/pkgconfig")
            for line, mark, language, text in blocks(page):
                if language not in CHECKED and not text.startswith("$ "):
                    continue
                wrong = check(graft, shell, folder, mark, language, text)
                count += 1
                failed += wrong is not None
                print(f"{'not ok' if wrong else 'ok'} {count} - {page}:{line}", flush=True)
                for told in (wrong or "").split("\n"):
                    if told:
                        print("# " + told)
            shell.process.stdin.close()
            shell.process.wait()
    linked = sorted(glob.glob("*.md") + glob.glob("docs/*.md") + glob.glob("rules/*/*.md"))
    dead = [f"{page}: {target}" for page in linked for target in dead_links(page)]
    count += 1
    failed += bool(dead)
    print(f"{'not ok' if dead else 'ok'} {count} - links of {len(linked)} pages lead somewhere")
    for link in dead:
        print("# " + link)
    print(f"1..{count}")
    sys.exit(failed > 0)


main()
