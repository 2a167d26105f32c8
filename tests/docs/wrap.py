"""Wraps paragraphs and list items of Markdown pages at 100 characters, in place.

    python3 tests/docs/wrap.py PAGE...

Headings, tables, comments, fenced and indented blocks stay as they are. Code between backticks is
not broken unless it is long, and no line begins with what Markdown would take for something else.
"""
import re
import sys

WIDTH = 100
LONG_CODE = 70
MISLEADING = re.compile(r"([-+*=>|]|#+|\d+[.)])$")


def words(text):
    """Splits at blanks, but not within backticks."""
    whole = re.findall(r"(?:`[^`]*`|[^\s`])+", text)
    return [part for word in whole for part in (word.split() if len(word) > LONG_CODE else [word])]


def wrapped(text, first, rest):
    line, is_empty = first, True
    for word in words(text):
        if not is_empty and len(line) + 1 + len(word) > WIDTH and not MISLEADING.match(word):
            yield line
            line = rest + word
        else:
            line += word if is_empty else " " + word
        is_empty = False
    yield line


def page(text):
    lines, paragraph, first, rest = [], [], "", ""
    is_fenced = False
    for line in text.split("\n") + [""]:
        bare = line.strip()
        is_fenced ^= bare.startswith("```")
        item = re.match(r"(\s*(?:[-*+]|\d+\.)\s+)(.*)", line)
        stays = (is_fenced or bare.startswith(("```", "|", "#", "<!--")) or not bare or
                 (line.startswith("    ") and not paragraph))
        if paragraph and (stays or item):
            lines += wrapped(" ".join(paragraph), first, rest)
            paragraph = []
        if stays:
            lines.append(line)
        elif item:
            first, rest, paragraph = item[1], " " * len(item[1]), [item[2]]
        else:
            if not paragraph:
                first = rest = line[: len(line) - len(line.lstrip())]
            paragraph.append(bare)
    return "\n".join(lines[:-1])


for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as file:
        before = file.read()
    after = page(before)
    assert before.split() == after.split(), path
    if after != before:
        with open(path, "w", encoding="utf-8") as file:
            file.write(after)
