"""Writes an ONNX model of as many nodes as asked for, with names that would be HTML if they were not
escaped: report_model.py NODES OUT.onnx. By hand, so that no package is needed."""
import sys

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(2)>"


def number(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def whole(field, value):
    return number(field << 3) + number(value)


def part(field, content):
    content = content.encode() if isinstance(content, str) else content
    return number(field << 3 | 2) + number(len(content)) + content


def tensor(name):  # A ValueInfoProto: float, of one size that is open and one of 8.
    shape = part(1, part(2, "<s>size</s>")) + part(1, whole(1, 8))
    return part(1, name) + part(2, part(1, whole(1, 1) + part(2, shape)))


def node(kind, reads, makes, name):
    return part(1, b"".join(part(1, read) for read in reads) + part(2, makes) + part(3, name) +
                part(4, kind))


def graph(count):
    """Blocks that a rule makes smaller, a b + a c = a (b + c), with what only stands between them."""
    value, before = "<i>input</i>", "<i>input</i>"
    nodes = b""
    for i in range(count):
        makes = "<u>output</u>" if i == count - 1 else "v%d" % i
        kind, reads = "Sigmoid", [value]
        if i == count - 2:
            kind = "<b>Own</b>"  # No operator that Graft knows.
        elif i < 16 and i % 4 == 1:
            kind, reads = "Mul", [value, before]
        elif i < 16 and i % 4 == 2:
            kind, reads = "Mul", ["v%d" % (i - 2), "v%d" % (i - 2)]
        elif i < 16 and i % 4 == 3:
            kind, reads = "Add", [value, "v%d" % (i - 2)]
        elif i >= 16 and i % 4 == 1:
            kind, reads = "Add", [value, before]
        elif i % 4 == 2:
            kind = "Tanh"
        nodes += node(kind, reads, makes, "%s %d" % (EVIL, i))
        value, before = makes, value
    return nodes + part(2, EVIL) + part(11, tensor("<i>input</i>")) + part(12, tensor(value))


def main():
    count, path = int(sys.argv[1]), sys.argv[2]
    with open(path, "wb") as file:
        file.write(whole(1, 7) + part(8, part(1, "") + whole(2, 13)) + part(7, graph(count)))


main()
