"""Evaluates rules with the ONNX package's reference implementation, at instances of its own choosing.

    python3 second_check.py RULES [--count N] [--sample N] [--seed N] [--jobs N]

RULES holds what `graft rules --json` prints, or users' rules in the plain YAML of tests/verify/corpus. Nothing is
shared with the program that proved them, except the table of operators' names and attributes (operators.def): rules
are parsed here (docs/rule-format.md), shapes and attributes are chosen here (primes up to 31, ranks up to 6, strides,
paddings, dilations, groups, real attributes, sizes next to the numbers that a rule names), and preconditions are
evaluated here. No operator is computed here: each is written as ONNX nodes, and onnx.reference evaluates both sides
in binary64. The shapes that are inferred here must be those that ONNX infers.

An instance is accepted when both sides fit and the precondition holds. A repair looks for it: a check that fails says
which sizes or attributes could be set to what. Where the sides differ by more than 1e-9 of their size, both are
evaluated in binary32 too: the distance between the two evaluations of one side tells how much rounding matters, and
1e-3 of it is allowed.

Elements at which the source is not finite are skipped, since a rule says nothing there; an infinity is a value for a
maximum, a minimum and a bounded function. What a dequantise reads is a number of 8 bits. Inputs at which the source
divides by an infinity or takes exp of one are not judged: the number 0 that comes out stands for nothing.

Three faults of the reference implementation are known. Softsign fails for tensors of rank 0, so it is given one of
rank 1. MaxPool with strides and dilations of 1 takes its paddings in the
order top, bottom, left, right instead of top, left, bottom, right: there the padding is written as a Pad of -infinity
before it. Pools leave out a NaN in a window (they mark padding by NaN). Inputs at which the source puts a NaN or an
infinity into a pool are not judged, nor into a convolution, which multiplies it by the 0 between the taps of a dilated
kernel.

Exit status: 0 when all rules agree, 1 when one differs or has no instance, 2 when something is missing or malformed.
"""

import argparse
import json
import multiprocessing
import os
import random
import re
import sys
import zlib

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
    from onnx.reference import ReferenceEvaluator
    from onnx.reference.ops.op_softsign import Softsign
except ImportError as error:
    print(f"second_check: no ONNX reference implementation here: {error}", file=sys.stderr)
    sys.exit(2)

softsign_of_ranks = Softsign._run
Softsign._run = lambda self, X: (softsign_of_ranks(self, X.reshape(-1))[0].reshape(X.shape),)

MAX_RANK = 6
MAX_SIZE = 96  # A variable's size along one axis.
MAX_ELEMENTS = 4096  # Of a tensor;
MAX_WINDOWS = 600  # of a pool's output, which the reference implementation makes one by one in Python;
MAX_WORK = 2000000  # and products of a convolution.
PRIMES = [2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31]
REPAIRS = 200  # of one instance
ATTEMPTS = 400  # at one rule
OPSET = 18
ACTIVATIONS = ["none", "relu", "relu6", "sigmoid", "tanh"]
INFINITY = float("inf")


# ---------------------------------------------------------------- operators.def


class Attribute:
    def __init__(self, name, kind, least, most):
        self.name, self.kind, self.least, self.most = name, kind, least, most


class Operator:
    """`function` is the ONNX operator of a FUNCTION row."""

    def __init__(self, name, inputs, outputs, function=None):
        self.name, self.inputs, self.outputs, self.attributes = name, inputs, outputs, []
        self.function = function


def read_operators(path):
    """Names, numbers of operands, attributes and their domains."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    operators = {}
    known = {"GRAFT_MAX_RANK": MAX_RANK, "INT32_MAX": 2**31 - 1, "GRAFT_ACT_COUNT": len(ACTIVATIONS)}
    for line in text.split("\n"):
        function = re.match(r'FUNCTION\(\d+, (\w+), .*"(\w+)"', line)
        if function is not None:
            operators[function.group(1)] = Operator(function.group(1), 1, 1, function.group(2))
        row = re.match(r"(OP|ATTR)\((.*)\)$", line)
        if row is None:
            continue
        cells = [cell.strip() for cell in row.group(2).split(",")]
        if row.group(1) == "OP":
            operators[cells[1]] = Operator(cells[1], int(cells[2]), int(cells[3]))
        else:
            least, most = (eval(cell, {"__builtins__": {}}, known) for cell in cells[5:7])
            operators[cells[0]].attributes.append(Attribute(cells[2], cells[3], least, most))
    return operators


OPERATORS = read_operators(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "include", "graft",
                                        "operators.def"))


# ---------------------------------------------------------------- rules as text

TOKEN = re.compile(r"\s*(<=|\d+(?:\.\d+)?(?:e[+-]?\d+)?|[A-Za-z_]\w*|[()\[\],=#.+*/-])")


def name_attribute(operator, name):
    for attribute in operator.attributes:
        if attribute.name == name:
            return attribute
    return None


class Node:
    """An operator of a side: attributes are expressions by name."""

    def __init__(self, operator, inputs, attributes):
        self.operator, self.inputs, self.attributes = operator, inputs, attributes
        self.key = repr((operator, inputs, sorted(attributes.items())))


class Rule:
    """Sides are lists of outputs: ("var", letter) or ("node", key, output)."""

    def __init__(self, name, source, target, where):
        self.name = name
        self.texts = (source, target, where)
        self.slots = {}  # (number, attribute's name) -> (operator's name, Attribute)
        self.inherited = {}  # the same -> expression, where the attribute is written
        self.nodes = {}
        self.variables = set()
        self.source = Parser(self, source, True).side()
        self.target = Parser(self, target, False).side()
        self.where = Parser(self, where, False).whole() if where else None
        self.variables = sorted(self.variables)
        self.slots = {key: slot for key, slot in self.slots.items() if key not in self.inherited}
        self.numbers = [float(n) for n in re.findall(r"(?<![\w#.])-?\d+\.?\d*(?:e[+-]?\d+)?", " ".join(self.texts))]


class Parser:
    def __init__(self, rule, text, is_source):
        self.rule, self.is_source = rule, is_source
        self.tokens, at = [], 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if match is None:
                raise ValueError(f"{rule.name}: cannot read '{text[at:]}'")
            self.tokens.append(match.group(1))
            at = match.end()
        self.at = 0

    def peek(self, ahead=0):
        return self.tokens[self.at + ahead] if self.at + ahead < len(self.tokens) else ""

    def next(self):
        self.at += 1
        return self.tokens[self.at - 1] if self.at <= len(self.tokens) else ""

    def take(self, token):
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token):
        if not self.take(token):
            raise ValueError(f"{self.rule.name}: expected '{token}', found '{self.peek()}'")

    def end(self, what):
        if self.peek():
            raise ValueError(f"{self.rule.name}: '{self.peek()}' behind the {what}")

    def side(self):
        outputs = []
        if self.take("["):
            while not outputs or self.take(","):
                outputs.append(self.term())
            self.expect("]")
        else:
            outputs.append(self.term())
        self.end("side")
        return outputs

    def whole(self):
        expression = self.expression()
        self.end("condition")
        return expression

    def term(self):
        word = self.next()
        if re.fullmatch("[a-h]", word) and self.peek() != "(":
            self.rule.variables.add(word)
            return ("var", word)
        if word not in OPERATORS:
            raise ValueError(f"{self.rule.name}: no operator '{word}'")
        operator = OPERATORS[word]
        number = int(self.next()) if self.take("#") else None
        self.expect("(")
        owns = self.own_slots(operator, number)
        inputs = []
        while len(inputs) < operator.inputs:
            if inputs:
                self.expect(",")
            inputs.append(self.term())
        attributes = {}
        while not self.take(")"):
            if inputs or attributes:
                self.expect(",")
            self.attribute(operator, attributes)
        self.fill_attributes(operator, number, owns, attributes)
        node = Node(word, inputs, attributes)
        self.rule.nodes.setdefault(node.key, node)
        if operator.outputs == 1:
            return ("node", node.key, 0)
        self.expect(".")
        return ("node", node.key, int(self.next()))

    def attribute(self, operator, attributes):
        name = self.next()
        self.expect("=")
        attribute = name_attribute(operator, name)
        if attribute is not None:
            attributes[name] = self.value(attribute)
            return
        listed = [a for a in operator.attributes if a.name.startswith(name + "_")]
        self.expect("[")
        for place, attribute in enumerate(listed):
            if self.peek() == "]":
                attributes[attribute.name] = ("number", "0")
                continue
            if place > 0:
                self.expect(",")
            attributes[attribute.name] = self.value(attribute)
        self.expect("]")

    def value(self, attribute):
        if attribute.kind == "ACTIVATION" and self.peek() in ACTIVATIONS:
            return ("number", str(ACTIVATIONS.index(self.next())))
        return self.expression()

    def own_slots(self, operator, number):
        """A source operator with a new number has a slot for each attribute. Its operands may name them, so they are
        there before it is known which of them will be written."""
        slots = self.rule.slots
        if self.is_source and number is not None and not any(key[0] == number for key in slots):
            slots.update({(number, a.name): (operator.name, a) for a in operator.attributes})
            return True
        return False

    def fill_attributes(self, operator, number, owns, attributes):
        """What is written stands for the slot; what is not is the slot of the number."""
        for attribute in operator.attributes:
            key = (number, attribute.name)
            if attribute.name in attributes:
                if owns and attributes[attribute.name] != ("slot", key):
                    self.rule.inherited[key] = attributes[attribute.name]
            elif key in self.rule.slots:
                attributes[attribute.name] = ("slot", key)
            else:
                raise ValueError(f"{self.rule.name}: {operator.name} lacks {attribute.name}")

    LEVELS = [("or",), ("and",), ("=", "<="), ("+", "-"), ("*", "/", "mod")]

    def expression(self, level=0):
        if level == len(self.LEVELS):
            return self.atom()
        left = self.expression(level + 1)
        while self.peek() in self.LEVELS[level]:
            sign = self.next()
            left = (sign, left, self.expression(level + 1))
        return left

    def arguments(self):
        self.expect("(")
        found = [self.expression()]
        while self.take(","):
            found.append(self.expression())
        self.expect(")")
        return found

    def atom(self):
        token = self.next()
        if token == "(":
            inner = self.expression()
            self.expect(")")
            return inner
        if token == "-":
            return ("number", "-" + self.next())
        if token == "#":
            number = int(self.next())
            self.expect(".")
            key = (number, self.next())
            if key not in self.rule.slots:
                raise ValueError(f"{self.rule.name}: no attribute #{number}.{key[1]}")
            return ("slot", key)
        if token == "not":
            return ("not", self.atom())
        if token == "dim":
            self.expect("(")
            variable = self.next()
            self.expect(",")
            axis = int(self.next() + (self.next() if self.tokens[self.at - 1] == "-" else ""))
            self.expect(")")
            return ("dim", variable, axis)
        if token in ("rank", "const", "same_shape"):
            self.expect("(")
            names = [self.next()]
            while self.take(","):
                names.append(self.next())
            self.expect(")")
            return (token, *names)
        if token in ("min", "max", "fmin", "fmax", "fle", "divides"):
            return (token, *self.arguments())
        if token == "inf" or token[:1].isdigit():
            return ("number", token)
        raise ValueError(f"{self.rule.name}: cannot read '{token}'")


def read_plain_yaml(path, text):
    """Users' rules: words, strings in quotes and lists of these, in YAML's block or flow form."""
    pair = re.compile(r'(\w+):\s*("[^"]*"|\[[^\]]*\]|[^\s,{}"]+)')
    rules = []
    body = "\n".join(line for line in text.split("\n") if not line.lstrip().startswith("#"))
    for entry in re.split(r"^\s*- ", body, flags=re.M)[1:]:
        if pair.sub("", entry).strip(" \n,{}"):
            raise ValueError(f"{path}: not of the corpus's form: {entry}")
        rule = {"where": ""}
        for key, value in pair.findall(entry):
            value = json.loads(value) if value[:1] in ('"', "[") else value
            rule[key] = " and ".join(f"({v})" for v in value) if isinstance(value, list) else value
        rules.append(rule)
    return rules


def read_rules(path):
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if path.endswith((".yaml", ".yml")):
        found = read_plain_yaml(path, text)
    else:
        found = [json.loads(line) for line in text.split("\n") if line]
    return [(rule["name"], rule["source"], rule["target"], rule["where"]) for rule in found]


# ---------------------------------------------------------------- repairs


class Repair(Exception):
    """A check failed. Each option sets something that may mend it, and says whether it did."""

    def __init__(self, *options):
        super().__init__()
        self.options = list(options)


class Number:
    """A size or attribute, and how to make it another one: put(value) sets what it comes from, or is None."""

    __slots__ = ("value", "way")

    def __init__(self, value, way=None):
        self.value, self.way = value, way

    def put(self, value):
        return self.way is not None and value != self.value and bool(self.way(value))


class Shape:
    def __init__(self, sizes, rank=None):
        self.sizes = sizes
        self.put_rank = rank if rank is not None else lambda rank: False

    @property
    def values(self):
        return [size.value for size in self.sizes]

    @property
    def rank(self):
        return len(self.sizes)


def product(values):
    result = 1
    for value in values:
        result *= value
    return result


def divisors(value):
    return [d for d in range(1, value + 1) if value % d == 0]


def want_equal(a, b):
    if a.value != b.value:
        raise Repair(lambda: a.put(b.value), lambda: b.put(a.value))


def join(a, b):
    """A number that is both."""
    return Number(a.value, lambda value: [a.put(value), b.put(value)] != [False, False])


# ---------------------------------------------------------------- instances


class Instance:
    """Shapes of variables, values of attribute variables. Chosen at random, then repaired."""

    def __init__(self, rule, rng):
        self.rule, self.rng = rule, rng
        near = [int(abs(n)) + d for n in rule.numbers if abs(n) <= 64 for d in (-1, 0, 1)]
        self.pool = rng.sample(PRIMES, rng.randint(1, 3)) + rng.sample(near, min(len(near), rng.randint(0, 2)))
        self.pool = [size for size in self.pool if size > 0]
        usual = rng.choice([1, 2, 2, 3, 3, 4, 4, 4, 5, 6])
        self.sizes = {}
        for variable in rule.variables:
            rank = usual if rng.random() < 0.6 else rng.randint(0, MAX_RANK)
            self.sizes[variable] = [self.pick_size() for _ in range(rank)]
        self.slots = {key: self.pick_attribute(key) for key in rule.slots}
        self.known = {variable: True for variable in rule.variables}

    def pick_size(self):
        way = self.rng.random()
        if way < 0.15:
            return 1
        return self.rng.choice(self.pool) if way < 0.8 else self.rng.choice([2, 3, 4, 5, 6, 7, 8, 9, 12, 16])

    def pick_float(self):
        rng = self.rng
        value = rng.choice([0.0, 1.0, -1.0, 0.5, 6.0, rng.uniform(-2, 2), rng.uniform(-2, 2), rng.uniform(0, 1),
                            rng.uniform(0, 1), rng.uniform(-20, 20), rng.uniform(-20, 20)] + self.rule.numbers[:6])
        if rng.random() < 0.2 and self.rule.numbers:
            value = rng.choice(self.rule.numbers) * rng.choice([0.5, 0.9, 1.1, 2.0]) + rng.choice([0, 1e-3, -1e-3])
        return float(np.float32(value))

    def pick_attribute(self, key):
        operator, attribute = self.rule.slots[key]
        rng, name = self.rng, attribute.name
        if attribute.kind == "FLOAT":
            if operator == "clip" and rng.random() < 0.2:
                return -INFINITY if name == "low" else INFINITY
            value = self.pick_float()
            return abs(value) if operator == "leaky_relu" or name == "epsilon" else value
        if name == "groups":
            return rng.choice([1, 1, 1, 2, 3, 4, 5, 7])
        if name.startswith(("kernel", "stride", "dilation")):
            return rng.choice([1, 1, 2, 2, 3, 3, 4, 5, 7] if name[0] == "k" else [1, 1, 1, 2, 2, 3, 4, 5, 7])
        if name.startswith("pad_") and attribute.kind == "INT":
            return rng.choice([0, 0, 1, 1, 2, 3, 4, 6])
        if attribute.kind == "DIM":
            return max(attribute.least, rng.choice([0, self.pick_size(), self.pick_size(), 1, 2]))
        return rng.randint(attribute.least, attribute.most)

    def put_slot(self, key, value):
        attribute = self.rule.slots[key][1]
        if attribute.kind != "FLOAT" and not attribute.least <= value <= attribute.most:
            return False
        changed = self.slots[key] != value
        self.slots[key] = value
        return changed

    def slot(self, key):
        return Number(self.slots[key], lambda value: self.put_slot(key, value))

    def put_size(self, variable, axis, value):
        if not 1 <= value <= MAX_SIZE or axis >= len(self.sizes[variable]):
            return False
        changed = self.sizes[variable][axis] != value
        self.sizes[variable][axis] = value
        return changed

    def put_rank(self, variable, rank):
        sizes = self.sizes[variable]
        if not 0 <= rank <= MAX_RANK or rank == len(sizes):
            return False
        missing = [self.pick_size() for _ in range(rank - len(sizes))]
        self.sizes[variable] = missing + sizes[len(sizes) - rank if rank < len(sizes) else 0:]
        return True

    def size(self, variable, axis):
        return Number(self.sizes[variable][axis], lambda value: self.put_size(variable, axis, value))

    def shape(self, variable):
        sizes = [self.size(variable, axis) for axis in range(len(self.sizes[variable]))]
        return Shape(sizes, lambda rank: self.put_rank(variable, rank))

    def shrink(self):
        """Makes some large size smaller."""
        large = [(v, i) for v in self.sizes for i, size in enumerate(self.sizes[v]) if size > 2]
        if not large:
            return any(self.put_rank(v, len(self.sizes[v]) - 1) for v in self.sizes if len(self.sizes[v]) > 3)
        variable, axis = self.rng.choice(large)
        smaller = [size for size in [1, 2, 3, 5, 7] if size < self.sizes[variable][axis]]
        return self.put_size(variable, axis, self.rng.choice(smaller))

    def text(self):
        parts = [f"{v}: {'x'.join(map(str, s)) if s else 'scalar'}" for v, s in sorted(self.sizes.items())]
        return ", ".join(parts + [f"#{n}.{name} = {self.slots[n, name]:.9g}" for n, name in self.slots])


# ---------------------------------------------------------------- expressions


class Expressions:
    """Values of expressions at an instance, and what would make a condition hold."""

    def __init__(self, instance):
        self.instance, self.rng = instance, instance.rng

    def number(self, node, real=False):
        kind = node[0]
        if kind == "number":
            return Number(float(np.float32(node[1])) if real else int(node[1]))
        if kind == "slot":
            written = self.instance.rule.inherited.get(node[1])
            return self.instance.slot(node[1]) if written is None else self.number(written, real)
        if kind == "dim":
            return self.dim(node[1], node[2])
        if kind == "rank":
            variable = node[1]
            return Number(len(self.instance.sizes[variable]), lambda rank: self.instance.put_rank(variable, rank))
        if kind in ("fmin", "fmax", "min", "max"):
            numbers = [self.number(n, kind[0] == "f") for n in node[1:]]
            pick = min if kind.endswith("min") else max
            return pick(numbers, key=lambda n: n.value)
        if kind in ("+", "-", "*", "/", "mod"):
            return self.arithmetic(kind, self.number(node[1]), self.number(node[2]))
        return Number(int(self.truth(node)))

    def dim(self, variable, axis):
        rank = len(self.instance.sizes[variable])
        place = axis + rank if axis < 0 else axis
        if not 0 <= place < rank:
            needed = -axis if axis < 0 else axis + 1
            raise Repair(lambda: self.instance.put_rank(variable, self.rng.randint(min(needed, 6), 6)))
        return self.instance.size(variable, place)

    def arithmetic(self, sign, a, b):
        x, y = a.value, b.value
        if sign == "+":
            return Number(x + y, lambda v: a.put(v - y) or b.put(v - x))
        if sign == "-":
            return Number(x - y, lambda v: a.put(v + y) or b.put(x - v))
        if sign == "*":
            return Number(x * y, lambda v: (y != 0 and v % y == 0 and a.put(v // y)) or
                          (x != 0 and v % x == 0 and b.put(v // x)))
        if sign == "/":
            if y == 0 or x % y != 0:
                times = self.rng.randint(1, 5)
                raise Repair(lambda: a.put(y * times), lambda: b.put(self.rng.choice(divisors(max(1, abs(x))))))
            return Number(x // y, lambda v: a.put(v * y))
        if y <= 0 or x < 0:
            raise Repair(lambda: a.put(self.rng.randint(0, 9)), lambda: b.put(self.rng.randint(1, 5)))
        return Number(x % y, lambda v: a.put(x - x % y + v))

    def shapes_equal(self, node):
        return self.instance.sizes[node[1]] == self.instance.sizes[node[2]]

    def truth(self, node):
        kind = node[0]
        if kind in ("and", "or"):
            both = [self.truth(n) for n in node[1:]]
            return all(both) if kind == "and" else any(both)
        if kind == "not":
            return not self.truth(node[1])
        if kind == "same_shape":
            return self.shapes_equal(node)
        if kind == "const":
            return self.instance.known[node[1]]
        if kind in ("=", "<=", "fle", "divides"):
            a, b = (self.number(n, kind == "fle").value for n in node[1:])
            if kind == "divides":
                return a != 0 and b % a == 0
            return a == b if kind == "=" else a <= b
        return self.number(node).value != 0

    def require(self, node, wanted=True):
        """Raises a repair unless the condition holds (does not hold)."""
        if self.truth(node) == wanted:
            return
        kind = node[0]
        if kind == "not":
            self.require(node[1], not wanted)
        elif kind in ("and", "or"):
            if (kind == "and") == wanted:
                self.require(node[1], wanted)
                self.require(node[2], wanted)
            else:
                self.require(node[self.rng.randint(1, 2)], wanted)
        elif kind == "same_shape":
            raise Repair(lambda: self.change_shape(node, wanted))
        elif kind == "const":
            raise Repair(lambda: self.flip(node[1]))
        elif kind in ("=", "<=", "fle", "divides"):
            self.require_relation(kind, *(self.number(n, kind == "fle") for n in node[1:]), wanted)
        raise Repair()

    def flip(self, variable):
        self.instance.known[variable] = not self.instance.known[variable]
        return True

    def change_shape(self, node, equal):
        a, b = self.rng.sample(node[1:], 2)
        sizes = self.instance.sizes
        if equal:
            sizes[a] = list(sizes[b])
        else:
            sizes[a] = [self.instance.pick_size() for _ in range(self.rng.randint(1, 4))]
        return True

    def require_relation(self, kind, a, b, wanted):
        x, y, some = a.value, b.value, self.rng.randint(0, 4)
        if kind == "divides":
            if wanted:
                raise Repair(lambda: b.put(max(1, x) * (some + 1)), lambda: a.put(self.rng.choice(divisors(max(1, y)))))
            raise Repair(lambda: b.put(y + 1), lambda: a.put(x + 1))
        if kind == "=":
            if wanted:
                raise Repair(lambda: a.put(y), lambda: b.put(x))
            raise Repair(lambda: a.put(x + some + 1), lambda: b.put(y + some + 1), lambda: a.put(x - 1))
        step = some * 0.25 if kind == "fle" else some
        if wanted:
            raise Repair(lambda: a.put(y - step), lambda: b.put(x + step), lambda: a.put(y), lambda: b.put(x))
        raise Repair(lambda: a.put(y + step + 1), lambda: b.put(x - step - 1))


# ---------------------------------------------------------------- shapes of operators
# Which shapes an operator takes, as include/graft/operators.def describes it. What Graft does not take (a window that
# lies in the padding alone, a matrix product of vectors) is no instance, even if ONNX takes it.


class Shapes:
    """One method an operator: attributes and operands' shapes to outputs' shapes."""

    def __init__(self, rng):
        self.rng = rng

    def want_rank(self, shape, ranks):
        if shape.rank not in ranks:
            raise Repair(lambda: shape.put_rank(self.rng.choice(list(ranks))))

    def want_axis(self, attrs, shape):
        axis = attrs["axis"]
        if axis.value >= shape.rank:
            raise Repair(lambda: shape.rank > 0 and axis.put(self.rng.randrange(shape.rank)),
                         lambda: shape.put_rank(self.rng.randint(min(axis.value + 1, MAX_RANK), MAX_RANK)))
        return axis.value

    def vector(self, shape, size):
        self.want_rank(shape, [1])
        want_equal(shape.sizes[0], size)

    def same(self, attrs, x):
        return [x]

    identity = relu = sigmoid = tanh = exp = sqrt = erf = gelu = same

    def clip(self, attrs, x):
        low, high = attrs["low"], attrs["high"]
        if low.value > high.value or low.value == INFINITY or high.value == -INFINITY:
            raise Repair(lambda: low.put(min(high.value, self.rng.choice([-1.0, 0.0, high.value]))),
                         lambda: high.put(max(low.value, self.rng.choice([1.0, 6.0, low.value]))))
        return [x]

    def leaky_relu(self, attrs, x):
        if not 0 <= attrs["slope"].value < INFINITY:
            raise Repair(lambda: attrs["slope"].put(0.25))
        return [x]

    def broadcast(self, a, b, kept=0):
        sizes = []
        for back in range(max(a.rank, b.rank), kept, -1):
            x = a.sizes[-back] if back <= a.rank else Number(1)
            y = b.sizes[-back] if back <= b.rank else Number(1)
            if x.value != y.value and 1 not in (x.value, y.value):
                raise Repair(lambda x=x, y=y: x.put(y.value), lambda x=x, y=y: y.put(x.value),
                             lambda x=x: x.put(1), lambda y=y: y.put(1))
            sizes.append(join(x, y) if x.value == y.value else y if x.value == 1 else x)
        return sizes

    def pair(self, attrs, a, b):
        return [Shape(self.broadcast(a, b), lambda rank: any(
            [x.put_rank(rank) for x in self.rng.sample([a, b], 2) if x.rank > rank or max(a.rank, b.rank) < rank]))]

    add = sub = mul = div = max = min = less = equal_to = remainder = pair
    logical_not = same

    def select(self, attrs, c, a, b):
        return self.pair(attrs, self.pair(attrs, c, a)[0], b)

    def slide(self, size, kernel, attrs, i, dilation):
        """Sizes of the output along an axis; i: 0 for h, 1 for w."""
        before, after = attrs["pad_" + ["top", "left"][i]], attrs["pad_" + ["bottom", "right"][i]]
        stride = attrs["stride_" + "hw"[i]].value
        reach = dilation.value * (kernel.value - 1) + 1
        room = size.value + before.value + after.value - reach
        if room < 0:
            raise Repair(lambda: size.put(size.value - room + self.rng.randint(0, 5)), lambda: kernel.put(1),
                         lambda: dilation.put(1), lambda: kernel.put(self.rng.randint(1, 3)))
        slack = self.rng.randrange(stride)
        return Number(room // stride + 1,
                      lambda v: size.put((v - 1) * stride + slack + reach - before.value - after.value))

    def conv(self, attrs, x, w, *_):
        self.want_rank(x, [4])
        self.want_rank(w, [4])
        channels, groups, inner, outer = x.sizes[1], attrs["groups"], w.sizes[1], w.sizes[0]
        g = groups.value
        if inner.value * g != channels.value:
            raise Repair(lambda: channels.put(inner.value * g),
                         lambda: channels.value % g == 0 and inner.put(channels.value // g),
                         lambda: channels.value % inner.value == 0 and groups.put(channels.value // inner.value))
        if outer.value % g != 0:
            raise Repair(lambda: outer.put(g * self.rng.randint(1, 4)), lambda: outer.put(g * self.rng.randint(1, 4)),
                         lambda: groups.put(self.rng.choice(divisors(outer.value))))
        planes = [self.slide(x.sizes[2 + i], w.sizes[2 + i], attrs, i, attrs["dilation_" + "hw"[i]]) for i in (0, 1)]
        out = Shape([x.sizes[0], outer] + planes)
        if product(out.values) * product(w.values[1:]) > MAX_WORK:
            raise Repair(lambda: x.sizes[2].put(max(1, x.values[2] // 2)), lambda: inner.put(1))
        return [out]

    def conv_bias(self, attrs, x, w, b, *_):
        out = self.conv(attrs, x, w)
        self.vector(b, out[0].sizes[1])
        return out

    def conv_bias_add(self, attrs, x, w, b, r):
        out = self.conv_bias(attrs, x, w, b)
        self.agree(r, out[0])
        return out

    def agree(self, a, b):
        """Equal shapes."""
        if a.rank != b.rank:
            raise Repair(lambda: a.put_rank(b.rank), lambda: b.put_rank(a.rank))
        for x, y in zip(a.sizes, b.sizes):
            want_equal(x, y)

    def matmul(self, attrs, a, b, *_):
        self.want_rank(a, range(2, 7))
        self.want_rank(b, range(2, 7))
        want_equal(a.sizes[-1], b.sizes[-2])
        return [Shape(self.broadcast(a, b, 2) + [a.sizes[-2], b.sizes[-1]],
                      lambda rank: rank >= 2 and any([a.put_rank(rank), b.put_rank(rank)]))]

    def matmul_bias(self, attrs, a, b, c):
        out = self.matmul(attrs, a, b)
        self.vector(c, out[0].sizes[-1])
        return out

    def scale_shift(self, attrs, x, s, t):
        self.want_rank(x, range(2, 7))
        self.vector(s, x.sizes[1])
        self.vector(t, x.sizes[1])
        return [x]

    def layer_norm(self, attrs, x, s, t):
        if not 0 < attrs["epsilon"].value < INFINITY:
            raise Repair(lambda: attrs["epsilon"].put(float(np.float32(self.rng.choice([1e-5, 1e-3, 0.7])))))
        self.want_rank(x, range(1, 7))
        self.vector(s, x.sizes[-1])
        self.vector(t, x.sizes[-1])
        return [x]

    def rms_norm(self, attrs, x, s):
        return self.layer_norm(attrs, x, s, s)

    def instance_norm(self, attrs, x, s, t):
        self.want_rank(x, range(3, 7))
        return self.layer_norm(attrs, Shape(x.sizes[2:] + [x.sizes[1]]), s, t) and [x]

    def softmax(self, attrs, x):
        self.want_axis(attrs, x)
        return [x]

    log_softmax = cumsum = reverse = softmax

    def repeat(self, attrs, x):
        axis, times = self.want_axis(attrs, x), attrs["times"]
        size = x.sizes[axis]
        return [self.replace(x, axis, Number(size.value * times.value,
                                             lambda v: v % times.value == 0 and size.put(v // times.value)))]

    def pick(self, attrs, x):
        axis, step = attrs["axis"].value, attrs["step"].value
        size = self.slice(attrs, x)[0].sizes[axis].value
        return [self.replace(x, axis, Number((size - 1) // step + 1, lambda v: False))]

    def conv_transpose(self, attrs, x, w):
        self.want_rank(x, [4])
        self.want_rank(w, [4])
        want_equal(x.sizes[1], w.sizes[0])
        planes = []
        for i in (0, 1):
            pads = [attrs["pad_" + ["top", "left"][i]], attrs["pad_" + ["bottom", "right"][i]]]
            stride, extra = attrs["stride_" + "hw"[i]], attrs["extra_" + "hw"[i]]
            if extra.value >= stride.value:  # ONNX lets fewer be added than a stride.
                raise Repair(lambda extra=extra: extra.put(0), lambda stride=stride, extra=extra: stride.put(extra.value + 1))
            size = (stride.value * (x.sizes[2 + i].value - 1) + w.sizes[2 + i].value
                    + extra.value - pads[0].value - pads[1].value)
            if size < 1:
                raise Repair(lambda pads=pads: pads[0].put(0), lambda pads=pads: pads[1].put(0),
                             lambda i=i: x.sizes[2 + i].put(x.sizes[2 + i].value + 2))
            planes.append(Number(size, lambda v: False))
        return [Shape([x.sizes[0], w.sizes[1]] + planes)]

    def replace(self, x, axis, size):
        sizes = list(x.sizes)
        sizes[axis] = size
        return Shape(sizes, x.put_rank)

    def concat(self, attrs, a, b):
        if a.rank != b.rank:
            raise Repair(lambda: a.put_rank(b.rank), lambda: b.put_rank(a.rank))
        axis = self.want_axis(attrs, a)
        sizes = []
        for i, (x, y) in enumerate(zip(a.sizes, b.sizes)):
            if i == axis:
                sizes.append(Number(x.value + y.value, lambda v, x=x, y=y: x.put(v - y.value) or y.put(v - x.value)))
            else:
                want_equal(x, y)
                sizes.append(join(x, y))
        return [Shape(sizes, lambda rank: any([a.put_rank(rank), b.put_rank(rank)]))]

    def split(self, attrs, x):
        axis, at = self.want_axis(attrs, x), attrs["at"]
        size = x.sizes[axis]
        if at.value >= size.value:
            raise Repair(lambda: size.value > 1 and at.put(self.rng.randrange(1, size.value)),
                         lambda: size.put(at.value + self.rng.randint(1, 7)))
        rest = Number(size.value - at.value, lambda v: size.put(v + at.value) or at.put(size.value - v))
        return [self.replace(x, axis, at), self.replace(x, axis, rest)]

    def slice(self, attrs, x):
        axis, start, end = self.want_axis(attrs, x), attrs["start"], attrs["end"]
        size = x.sizes[axis]
        if end.value > size.value:
            raise Repair(lambda: end.put(self.rng.randint(1, size.value)),
                         lambda: size.put(end.value + self.rng.randint(0, 5)))
        if end.value <= start.value:
            raise Repair(lambda: start.put(self.rng.randrange(end.value)),
                         lambda: end.put(start.value + self.rng.randint(1, 5)))
        return [self.replace(x, axis, Number(end.value - start.value,
                                             lambda v: end.put(start.value + v) or start.put(end.value - v)))]

    def quantise(self, attrs, x):
        scale, zero, least = attrs["scale"], attrs["zero"], attrs["least"]
        self.finite(scale)
        if scale.value <= 0:
            raise Repair(lambda: scale.put(-scale.value), lambda: scale.put(0.5))
        if not least.value <= zero.value <= least.value + 255:
            raise Repair(lambda: zero.put(least.value + self.rng.randint(0, 255)), lambda: least.put(max(-128, zero.value - 255)),
                         lambda: least.put(min(0, zero.value)))
        return [x]

    dequantise = quantise

    def finite(self, number):
        if abs(number.value) == INFINITY:
            raise Repair(lambda: number.put(0.5))

    def pad(self, attrs, x):
        axis, before, after = self.want_axis(attrs, x), attrs["before"].value, attrs["after"].value
        self.finite(attrs["value"])
        size = x.sizes[axis]
        ways = [lambda v: size.put(v - before - after), lambda v: attrs["after"].put(v - before - size.value),
                lambda v: attrs["before"].put(v - after - size.value)]
        self.rng.shuffle(ways)
        return [self.replace(x, axis, Number(size.value + before + after, lambda v: any(way(v) for way in ways)))]

    def transpose(self, attrs, x):
        axes = list(attrs.values())
        values = [axis.value for axis in axes]
        if sorted(values[:x.rank]) != list(range(x.rank)) or any(values[x.rank:]):
            named = max(values) + 1
            raise Repair(lambda: self.permute(axes, x.rank), lambda: x.put_rank(named),
                         lambda: x.put_rank(self.rng.randint(named, MAX_RANK)))
        return [Shape([x.sizes[axis] for axis in values[:x.rank]], x.put_rank)]

    def permute(self, axes, rank):
        wanted = self.rng.sample(range(rank), rank) + [0] * (MAX_RANK - rank)
        return any([axis.put(value) for axis, value in zip(axes, wanted)])

    def listed(self, sizes):
        """A shape that is written as six numbers: sizes, then zeros."""
        rank = next((i for i, size in enumerate(sizes) if size.value == 0), MAX_RANK)
        for size in sizes[rank:]:
            if size.value != 0:
                raise Repair(lambda size=size: size.put(0), lambda: sizes[rank].put(self.rng.randint(1, 4)))
        return Shape(sizes[:rank], lambda rank: self.cut(sizes, rank))

    def cut(self, sizes, rank):
        return any([size.put(0) if i >= rank else size.value == 0 and size.put(self.rng.randint(1, 4))
                    for i, size in enumerate(sizes)])

    def reshape(self, attrs, x):
        sizes = list(attrs.values())
        out = self.listed(sizes)
        count, have = product(x.values), product(out.values)
        if count != have:
            ways = [lambda: self.factor(sizes, count)]
            for i, size in enumerate(out.sizes):
                others = have // size.value
                ways.append(lambda size=size, others=others: count % others == 0 and size.put(count // others))
            for size in x.sizes:
                others = count // size.value
                ways.append(lambda size=size, others=others: have % others == 0 and size.put(have // others))
            raise Repair(*ways)
        return [out]

    def factor(self, sizes, count):
        """Numbers that are all free become some factors of the count."""
        rank, wanted = self.rng.randint(1, MAX_RANK), []
        for _ in range(rank - 1):
            wanted.append(self.rng.choice(divisors(count)))
            count //= wanted[-1]
        wanted = wanted + [count] + [0] * (MAX_RANK - rank)
        return all([size.value == value or size.put(value) for size, value in zip(sizes, wanted)])

    def fill(self, attrs):
        self.finite(attrs["value"])
        return [self.listed(list(attrs.values())[1:])]

    def pool(self, attrs, x, dilations):
        self.want_rank(x, [4])
        sizes = list(x.sizes)
        for i in (0, 1):
            kernel, size, dilation = attrs["kernel_" + "hw"[i]], x.sizes[2 + i], dilations[i]
            reach = dilation.value * (kernel.value - 1)
            for end in (("top", "left")[i], ("bottom", "right")[i]):
                padding = attrs["pad_" + end]
                if padding.value > reach:
                    raise Repair(lambda: padding.put(self.rng.randint(0, reach)), lambda: kernel.put(padding.value + 1))
            before = attrs["pad_" + ("top", "left")[i]]
            if dilation.value > size.value and before.value > 0:
                raise Repair(lambda: before.put(0), lambda: dilation.put(1), lambda: size.put(dilation.value))
            sizes[2 + i] = self.slide(size, kernel, attrs, i, dilation)
        if product(size.value for size in sizes) > MAX_WINDOWS:
            raise Repair(lambda: x.sizes[2].put(max(1, x.values[2] // 2)), lambda: x.sizes[1].put(1),
                         lambda: x.sizes[3].put(max(1, x.values[3] // 2)), lambda: x.sizes[0].put(1))
        return [Shape(sizes)]

    def max_pool(self, attrs, x):
        return self.pool(attrs, x, [attrs["dilation_h"], attrs["dilation_w"]])

    def avg_pool(self, attrs, x):
        return self.pool(attrs, x, [Number(1), Number(1)])

    def global_avg_pool(self, attrs, x):
        self.want_rank(x, [4])
        return [Shape(x.sizes[:2] + [Number(1), Number(1)])]

    def reduce(self, attrs, x):
        axes = attrs["axes"]
        if axes.value >> x.rank != 0:
            raise Repair(lambda: x.rank > 0 and axes.put(self.rng.randint(1, (1 << x.rank) - 1)),
                         lambda: x.put_rank(self.rng.randint(axes.value.bit_length(), MAX_RANK)))
        sizes = []
        for i, size in enumerate(x.sizes):
            if not axes.value >> i & 1:
                sizes.append(size)
            elif attrs["keep"].value == 1:
                sizes.append(Number(1))
        return [Shape(sizes)]

    reduce_mean = reduce_sum = reduce_max = reduce_min = reduce


# ---------------------------------------------------------------- operators as ONNX nodes


class Graph:
    """The nodes of both sides. A term that occurs twice is one node."""

    def __init__(self, real):
        self.real = real  # the number type of all tensors
        self.nodes, self.constants, self.count = [], [], 0

    def add(self, kind, inputs, outputs=1, **attributes):
        names = [f"t{self.count + i}" for i in range(outputs)]
        self.count += outputs
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, values):
        self.count += 1
        name = f"c{self.count}"
        self.constants.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def whole(self, values):
        return self.constant(np.array(values, dtype=np.int64))

    def number(self, value):
        return self.constant(np.array(value, dtype=self.real))


# Operators of ONNX with the same operands, and those that take the same axis besides.
PLAIN = {"identity": "Identity", "relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "exp": "Exp", "sqrt": "Sqrt",
         "erf": "Erf", "add": "Add", "sub": "Sub", "mul": "Mul", "div": "Div", "max": "Max", "min": "Min",
         "matmul": "MatMul", "global_avg_pool": "GlobalAveragePool"}
ALONG = {"concat": "Concat", "softmax": "Softmax", "log_softmax": "LogSoftmax"}
REDUCED = {"reduce_mean": "ReduceMean", "reduce_sum": "ReduceSum", "reduce_max": "ReduceMax", "reduce_min": "ReduceMin"}

MOVES = ("identity", "concat", "split", "slice", "transpose", "reshape", "repeat", "pick", "reverse")


class Nodes:
    """One method an operator: attributes, operands' names and shapes to outputs' names."""

    def __init__(self, graph):
        self.graph = graph

    def lower(self, operator, attrs, inputs, shapes):
        g = self.graph
        if OPERATORS[operator].function is not None:
            return [self.function(operator, attrs, inputs[0])]
        if operator in PLAIN:
            return [g.add(PLAIN[operator], inputs)]
        if operator in ALONG:
            return [g.add(ALONG[operator], inputs, axis=attrs["axis"])]
        if operator in REDUCED:
            axes = g.whole([i for i in range(MAX_RANK) if attrs["axes"] >> i & 1])
            return [g.add(REDUCED[operator], inputs + [axes], keepdims=attrs["keep"])]
        found = getattr(self, operator)(attrs, inputs, shapes)
        return found if isinstance(found, list) else [found]

    def function(self, operator, attrs, x):
        """An operator of ONNX that has attributes of the same names, or what it is called for."""
        g = self.graph
        if operator == "swish":
            return g.add("Mul", [x, g.add("Sigmoid", [g.add("Mul", [g.number(attrs["alpha"]), x])])])
        if operator == "mish":
            return g.add("Mul", [x, g.add("Tanh", [g.add("Softplus", [x])])])
        if operator == "gelu_tanh":
            cube = g.add("Mul", [x, g.add("Mul", [x, x])])
            inner = g.add("Add", [x, g.add("Mul", [g.number(np.float32(0.044715)), cube])])
            inner = g.add("Tanh", [g.add("Mul", [g.number(np.float32((2 / np.pi) ** 0.5)), inner])])
            return g.add("Mul", [g.add("Mul", [x, g.number(0.5)]), g.add("Add", [inner, g.number(1)])])
        if operator == "hard_swish":
            inner = g.add("Clip", [g.add("Add", [x, g.number(3)]), g.number(0), g.number(6)])
            return g.add("Div", [g.add("Mul", [x, inner]), g.number(6)])
        return g.add(OPERATORS[operator].function, [x], **attrs)

    def activate(self, x, activation):
        name = ACTIVATIONS[activation]
        if name == "relu6":
            return self.graph.add("Clip", [x, self.graph.number(0), self.graph.number(6)])
        return x if name == "none" else self.graph.add(PLAIN[name], [x])

    def window(self, kind, attrs, inputs, **more):
        pads = [attrs["pad_" + end] for end in ("top", "left", "bottom", "right")]
        sizes = {"strides": "stride", "dilations": "dilation", "kernel_shape": "kernel", "output_padding": "extra"}
        given = {key: [attrs[name + "_h"], attrs[name + "_w"]] for key, name in sizes.items() if name + "_h" in attrs}
        return self.graph.add(kind, inputs, **{"pads": pads, **given, **more})

    def conv(self, attrs, inputs, shapes):
        return self.window("Conv", attrs, inputs[:3], group=attrs["groups"])

    def conv_bias(self, attrs, inputs, shapes):
        return self.activate(self.conv(attrs, inputs, shapes), attrs["activation"])

    def conv_bias_add(self, attrs, inputs, shapes):
        return self.activate(self.graph.add("Add", [self.conv(attrs, inputs, shapes), inputs[3]]), attrs["activation"])

    def conv_transpose(self, attrs, inputs, shapes):
        return self.window("ConvTranspose", attrs, inputs)

    def max_pool(self, attrs, inputs, shapes):
        """Padding stands in a node of its own where the reference implementation would read it in another order."""
        pads = [attrs["pad_" + end] for end in ("top", "left", "bottom", "right")]
        if any(pads) and all(attrs[name] == 1 for name in ("stride_h", "stride_w", "dilation_h", "dilation_w")):
            around = self.graph.whole([0, 0] + pads[:2] + [0, 0] + pads[2:])
            inputs = [self.graph.add("Pad", inputs + [around, self.graph.number(-INFINITY)])]
            pads = [0, 0, 0, 0]
        return self.window("MaxPool", attrs, inputs, pads=pads)

    def avg_pool(self, attrs, inputs, shapes):
        return self.window("AveragePool", attrs, inputs, count_include_pad=attrs["count_pad"])

    def matmul_bias(self, attrs, inputs, shapes):
        total = self.graph.add("Add", [self.graph.add("MatMul", inputs[:2]), inputs[2]])
        return self.activate(total, attrs["activation"])

    def scale_shift(self, attrs, inputs, shapes):
        mean = self.graph.constant(np.zeros(shapes[1], dtype=self.graph.real))
        variance = self.graph.constant(np.ones(shapes[1], dtype=self.graph.real))
        return self.graph.add("BatchNormalization", inputs + [mean, variance], epsilon=0.0)

    def clip(self, attrs, inputs, shapes):
        bounds = ["" if abs(attrs[end]) == INFINITY else self.graph.number(attrs[end]) for end in ("low", "high")]
        return self.graph.add("Clip", inputs + bounds)

    def truth(self, kind, inputs):
        """A comparison as the number 0 or 1, which is what booleans are here."""
        real = helper.np_dtype_to_tensor_dtype(np.dtype(self.graph.real))
        return self.graph.add("Cast", [self.graph.add(kind, inputs)], to=real)

    def less(self, attrs, inputs, shapes):
        return self.truth("Less", inputs)

    def equal_to(self, attrs, inputs, shapes):
        return self.truth("Equal", inputs)

    def remainder(self, attrs, inputs, shapes):
        return self.graph.add("Mod", inputs, fmod=1)

    def logical_not(self, attrs, inputs, shapes):
        return self.graph.add("Sub", [self.graph.number(1)] + inputs)

    def select(self, attrs, inputs, shapes):
        g = self.graph
        return g.add("Where", [g.add("Greater", [inputs[0], g.number(0.5)])] + inputs[1:])

    def quantise(self, attrs, inputs, shapes):
        g = self.graph
        steps = g.add("Round", [g.add("Div", [inputs[0], g.number(attrs["scale"])])])
        return self.byte(g.add("Add", [steps, g.number(attrs["zero"])]), attrs["least"])

    def byte(self, number, least):
        return self.graph.add("Clip", [number, self.graph.number(least), self.graph.number(least + 255)])

    def dequantise(self, attrs, inputs, shapes):
        g = self.graph
        return g.add("Mul", [g.add("Sub", [inputs[0], g.number(attrs["zero"])]), g.number(attrs["scale"])])

    def leaky_relu(self, attrs, inputs, shapes):
        return self.graph.add("LeakyRelu", inputs, alpha=attrs["slope"])

    def gelu(self, attrs, inputs, shapes):
        g = self.graph
        inner = g.add("Erf", [g.add("Div", [inputs[0], g.number(np.float32(2**0.5))])])
        return g.add("Mul", [g.add("Mul", [inputs[0], g.add("Add", [inner, g.number(1)])]), g.number(0.5)])

    def divided(self, x, square_of, axes, epsilon):
        """x by the root of the mean of a square."""
        g = self.graph
        mean = g.add("ReduceMean", [g.add("Mul", [square_of, square_of]), axes])
        return g.add("Div", [x, g.add("Sqrt", [g.add("Add", [mean, g.number(epsilon)])])])

    def normalised(self, attrs, x, axes):
        """Not LayerNormalization, which the reference implementation evaluates in binary32."""
        centred = self.graph.add("Sub", [x, self.graph.add("ReduceMean", [x, axes])])
        return self.divided(centred, centred, axes, attrs["epsilon"])

    def layer_norm(self, attrs, inputs, shapes):
        g = self.graph
        scaled = g.add("Mul", [self.normalised(attrs, inputs[0], g.whole([-1])), inputs[1]])
        return g.add("Add", [scaled, inputs[2]])

    def rms_norm(self, attrs, inputs, shapes):
        x = inputs[0]
        return self.graph.add("Mul", [self.divided(x, x, self.graph.whole([-1]), attrs["epsilon"]), inputs[1]])

    def instance_norm(self, attrs, inputs, shapes):
        g, rank = self.graph, len(shapes[0])
        s, t = [g.add("Reshape", [x, g.whole([-1] + [1] * (rank - 2))]) for x in inputs[1:]]
        return g.add("Add", [g.add("Mul", [self.normalised(attrs, inputs[0], g.whole(list(range(2, rank)))), s]), t])

    def split(self, attrs, inputs, shapes):
        sizes = self.graph.whole([attrs["at"], shapes[0][attrs["axis"]] - attrs["at"]])
        return self.graph.add("Split", inputs + [sizes], 2, axis=attrs["axis"])

    def pick(self, attrs, inputs, shapes):
        ends = [self.graph.whole([attrs[name]]) for name in ("start", "end", "axis", "step") if name in attrs]
        return self.graph.add("Slice", inputs + ends)

    slice = pick

    def reverse(self, attrs, inputs, shapes):
        ends = [self.graph.whole([value]) for value in (-1, -(2**63), attrs["axis"], -1)]
        return self.graph.add("Slice", inputs + ends)

    def pad(self, attrs, inputs, shapes):
        pads = [0] * (2 * len(shapes[0]))
        pads[attrs["axis"]] = attrs["before"]
        pads[len(shapes[0]) + attrs["axis"]] = attrs["after"]
        return self.graph.add("Pad", inputs + [self.graph.whole(pads), self.graph.number(attrs["value"])])

    def transpose(self, attrs, inputs, shapes):
        axes = list(attrs.values())[:len(shapes[0])]
        return self.graph.add("Transpose", inputs, **({"perm": axes} if axes else {}))

    def sizes(self, values):
        return self.graph.whole([value for value in values if value != 0])

    def reshape(self, attrs, inputs, shapes):
        return self.graph.add("Reshape", inputs + [self.sizes(attrs.values())])

    def fill(self, attrs, inputs, shapes):
        value = numpy_helper.from_array(np.array([attrs["value"]], dtype=self.graph.real))
        return self.graph.add("ConstantOfShape", [self.sizes(list(attrs.values())[1:])], value=value)

    def cumsum(self, attrs, inputs, shapes):
        axis = self.graph.constant(np.array(attrs["axis"], dtype=np.int64))
        return self.graph.add("CumSum", inputs + [axis], exclusive=attrs["exclusive"])

    def repeat(self, attrs, inputs, shapes):
        """By places, as Resize takes no more than the reference implementation does."""
        size = shapes[0][attrs["axis"]]
        places = [i // attrs["times"] for i in range(size * attrs["times"])]
        return self.graph.add("Gather", inputs + [self.graph.whole(places)], axis=attrs["axis"])


# ---------------------------------------------------------------- both sides


class Sides:
    """Shapes and attributes of every node of both sides at an instance; a repair if something does not fit."""

    def __init__(self, instance):
        rule, self.instance = instance.rule, instance
        self.expressions, self.rules = Expressions(instance), Shapes(instance.rng)
        self.shapes, self.attributes = {}, {}
        source = [self.shape(term) for term in rule.source]
        if rule.where is not None:
            self.expressions.require(rule.where)
        target = [self.shape(term) for term in rule.target]
        for a, b in zip(source, target):
            self.rules.agree(a, b)
        if len(source) != len(target):
            raise ValueError(f"{rule.name}: the sides have different numbers of outputs")
        self.outputs = [shape.values for shape in source]

    def shape(self, term):
        if term[0] == "var":
            return self.limited(self.instance.shape(term[1]))
        if term[1] not in self.shapes:
            node = self.instance.rule.nodes[term[1]]
            operands = [self.shape(operand) for operand in node.inputs]
            numbers = self.numbers(node)
            function = OPERATORS[node.operator].function is not None
            outputs = (self.rules.same if function else getattr(self.rules, node.operator))(numbers, *operands)
            self.shapes[term[1]] = [self.limited(shape) for shape in outputs]
            self.attributes[term[1]] = {name: number.value for name, number in numbers.items()}
        return self.shapes[term[1]][term[2]]

    def numbers(self, node):
        found = {}
        for attribute in OPERATORS[node.operator].attributes:
            real = attribute.kind == "FLOAT"
            number = self.expressions.number(node.attributes[attribute.name], real)
            if not real and not attribute.least <= number.value <= attribute.most:
                most = min(attribute.most, attribute.least + 7)
                raise Repair(lambda: number.put(attribute.least), lambda: number.put(most),
                             lambda: number.put(self.instance.rng.randint(attribute.least, most)))
            found[attribute.name] = number
        return found

    def bytes(self):
        """Variables that a dequantise reads, where no quantise is between, with the least that each can be."""
        found, rule = {}, self.instance.rule
        for key, node in rule.nodes.items():
            stack = [(operand, self.attributes[key]["least"]) for operand in node.inputs
                     if node.operator == "dequantise" and key in self.attributes]
            while stack:
                term, least = stack.pop()
                if term[0] == "var":
                    if found.setdefault(term[1], least) != least:
                        raise Repair()
                elif rule.nodes[term[1]].operator != "quantise":
                    stack += [(operand, least) for operand in rule.nodes[term[1]].inputs]
        return found

    def booleans(self):
        """Variables that are: what a not or the condition of a select reads in the source, or is of one type with."""
        rule, found = self.instance.rule, set()
        source, stack = {}, list(rule.source)
        while stack:
            term = stack.pop()
            if term[0] != "var" and term[1] not in source:
                source[term[1]] = rule.nodes[term[1]]
                stack += source[term[1]].inputs
        for _ in range(len(source) + 1):
            for key, node in source.items():
                results = [("node", key, i) for i in range(2)]
                if node.operator in ("less", "equal_to"):
                    found.update(self.key(x) for x in results)
                if node.operator in ("logical_not", "select"):
                    found.add(self.key(node.inputs[0]))
                if node.operator in ("logical_not", "min", "max") or node.operator in MOVES:
                    one = [self.key(x) for x in list(node.inputs) + results]
                    found.update(one if found.intersection(one) else [])
        return {key for key in found if isinstance(key, str)}

    @staticmethod
    def key(term):
        return term[1] if term[0] == "var" else (term[1], term[2])

    def limited(self, shape):
        if product(shape.values) > MAX_ELEMENTS or shape.rank > MAX_RANK:
            raise Repair(self.instance.shrink)
        return shape


class Model:
    """Both sides as one ONNX model."""

    def __init__(self, sides, real):
        self.sides, self.real, self.graph, self.names = sides, real, Graph(real), {}
        rule, self.operators = sides.instance.rule, Nodes(self.graph)
        self.bytes, self.booleans = sides.bytes(), sides.booleans()
        self.outputs = [self.graph.add("Identity", [self.name(term)]) for term in rule.source + rule.target]
        kind = helper.np_dtype_to_tensor_dtype(np.dtype(real))
        inputs = [helper.make_tensor_value_info(v, kind, sides.instance.sizes[v]) for v in rule.variables]
        outputs = [helper.make_tensor_value_info(name, kind, shape)
                   for name, shape in zip(self.outputs, sides.outputs * 2)]
        graph = helper.make_graph(self.graph.nodes, "rule", inputs, outputs, self.graph.constants)
        self.proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
        self.evaluator = ReferenceEvaluator(self.proto)

    def name(self, term):
        if term[0] == "var" and term[1] in self.bytes:
            return self.operators.byte(self.graph.add("Round", [term[1]]), self.bytes[term[1]])
        if term[0] == "var" and term[1] in self.booleans:
            return self.operators.truth("Greater", [term[1], self.graph.number(0)])
        if term[0] == "var":
            return term[1]
        if term[1] not in self.names:
            node = self.sides.instance.rule.nodes[term[1]]
            inputs = [self.name(operand) for operand in node.inputs]
            shapes = [self.sides.shape(operand).values for operand in node.inputs]
            self.names[term[1]] = self.operators.lower(node.operator, self.sides.attributes[term[1]], inputs, shapes)
        return self.names[term[1]][term[2]]

    def check(self):
        """ONNX must take the model and infer the shapes that were inferred here."""
        onnx.checker.check_model(self.proto)
        onnx.shape_inference.infer_shapes(self.proto, check_type=True, strict_mode=True, data_prop=True)

    def run(self, feeds):
        with np.errstate(all="ignore"):
            found = self.evaluator.run(None, {name: np.asarray(x, dtype=self.real) for name, x in feeds.items()})
        half = len(found) // 2
        return found[:half], found[half:]

    def source_nodes(self):
        """The nodes that the source's outputs are made of."""
        made = {name: node for node in self.proto.graph.node for name in node.output}
        stack, found = self.outputs[: len(self.outputs) // 2], {}
        while stack:
            node = made.get(stack.pop())
            if node is not None and node.output[0] not in found:
                found[node.output[0]] = node
                stack += node.input
        return found.values()

    def is_judged(self, feeds):
        """Whether the source's numbers stand for what it means: see the head of this file."""
        doubtful = [(node.op_type, name) for node in self.source_nodes() if node.op_type in self.DOUBTFUL
                    for name in list(node.input)[1 if node.op_type == "Div" else 0:] if name]
        with np.errstate(all="ignore"):
            values = self.evaluator.run(None, feeds, intermediate=True)
        for kind, name in doubtful:
            x = values[name] if name in values else feeds[name]
            if np.isinf(x).any() or (self.DOUBTFUL[kind] and np.isnan(x).any()):
                return False
        return True

    # Operators whose result is a finite number although an operand is infinite, or (True) a NaN too.
    DOUBTFUL = {"Div": False, "Exp": False, "Conv": True, "MaxPool": True, "AveragePool": True}


def draw_inputs(rule, instance, rng):
    """Inputs of several kinds, by variable."""
    largest = max([10.0] + [1.5 * abs(n) for n in rule.numbers if abs(n) < 1e6])
    kinds = [lambda shape: rng.standard_normal(shape), lambda shape: rng.uniform(-largest, largest, shape),
             lambda shape: rng.integers(-3, 4, shape), lambda shape: rng.uniform(0.1, 3.0, shape)]
    for draw in kinds:
        yield {v: np.float64(np.float32(draw(instance.sizes[v]))) for v in rule.variables}


class Difference(Exception):
    pass


def far_apart(a, b, slack):
    with np.errstate(all="ignore"):
        close = np.abs(a - b) <= 1e-9 * (1 + np.maximum(np.abs(a), np.abs(b))) + slack
    return np.isfinite(a) & ~close & ~(a == b)


def rounding_slack(sides, feeds, source, target):
    """A thousandth of what binary32 changes in each side; everything where binary32 has no number."""
    narrow = Model(sides, np.float32).run(feeds)
    slack = []
    for wide, low in zip(zip(source, target), zip(*narrow)):
        with np.errstate(all="ignore"):
            moved = [np.abs(w - np.float64(n)) for w, n in zip(wide, low)]
            moved = [np.where(np.isfinite(w) & ~np.isfinite(m), INFINITY, m) for w, m in zip(wide, moved)]
        slack.append(1e-3 * (np.nan_to_num(moved[0], nan=0.0, posinf=INFINITY) +
                             np.nan_to_num(moved[1], nan=0.0, posinf=INFINITY)))
    return slack


def compare(model, sides, feeds):
    """The number of elements compared in every output; raises Difference."""
    source, target = model.run(feeds)
    for i, (a, b) in enumerate(zip(source, target)):
        if list(a.shape) != sides.outputs[i] or list(b.shape) != sides.outputs[i]:
            raise Difference(f"output {i} should be {sides.outputs[i]}, is {list(a.shape)} and {list(b.shape)}")
    if any(far_apart(a, b, 0).any() for a, b in zip(source, target)):
        slack = rounding_slack(sides, feeds, source, target)
        for i, (a, b) in enumerate(zip(source, target)):
            far = far_apart(a, b, slack[i])
            if far.any() and not model.is_judged(feeds):
                return 0
            if far.any():
                at = tuple(int(n) for n in np.argwhere(far)[0])
                raise Difference(f"output {i} at {list(at)}: {float(a[at])!r} and {float(b[at])!r}")
    return min(int(np.isfinite(a).sum()) for a in source)


def find_sides(rule, rng):
    """An accepted instance, or None."""
    instance = Instance(rule, rng)
    for _ in range(REPAIRS):
        try:
            return Sides(instance)
        except Repair as repair:
            rng.shuffle(repair.options)
            if not any(option() for option in repair.options):
                return None
    return None


class Result:
    def __init__(self, name):
        self.name, self.accepted, self.difference = name, 0, None
        self.largest, self.rank, self.past = 0, 0, 0


def check_rule(job):
    """Evaluates one rule at `count` instances."""
    (name, source, target, where), count, seed = job
    result, seen = Result(name), set()
    rule = Rule(name, source, target, where)
    rng = random.Random(zlib.crc32(f"{seed} {source} {target} {where}".encode()))
    numbers = np.random.default_rng(rng.getrandbits(32))
    for _ in range(ATTEMPTS):
        if result.accepted >= count:
            break
        sides = find_sides(rule, rng)
        if sides is None or sides.instance.text() in seen:
            continue
        seen.add(sides.instance.text())
        try:
            compared = 0
            model = Model(sides, np.float64)
            model.check()
            for feeds in draw_inputs(rule, sides.instance, numbers):
                compared += compare(model, sides, feeds)
        except Difference as difference:
            result.difference = f"{sides.instance.text() or 'no choice'}: {difference}"
            break
        if compared > 0:
            sizes = [size for shape in sides.instance.sizes.values() for size in shape]
            result.accepted += 1
            result.largest = max([result.largest] + sizes)
            result.rank = max([result.rank] + [len(shape) for shape in sides.instance.sizes.values()])
            result.past += any(size > 9 for size in sizes)
    return result


def parse_arguments():
    parser = argparse.ArgumentParser(description="evaluate rules with the ONNX reference implementation")
    parser.add_argument("rules")
    parser.add_argument("--count", type=int, default=5, help="instances of each rule")
    parser.add_argument("--sample", type=int, default=0, help="rules, spread evenly over the file")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    return parser.parse_args()


def main():
    arguments = parse_arguments()
    rules = read_rules(arguments.rules)
    if 0 < arguments.sample < len(rules):
        rules = [rules[i * len(rules) // arguments.sample] for i in range(arguments.sample)]
    jobs = [(rule, arguments.count, arguments.seed) for rule in rules]
    results = []
    with multiprocessing.Pool(arguments.jobs) as pool:
        for result in pool.imap(check_rule, jobs):
            results.append(result)
            if result.difference is not None:
                print(f"  DIFFERS  {result.name}: {result.difference}", flush=True)
            elif result.accepted < arguments.count:
                print(f"  {result.accepted} instances  {result.name}", flush=True)
    different = sum(result.difference is not None for result in results)
    none = sum(result.difference is None and result.accepted == 0 for result in results)
    few = sum(result.difference is None and 0 < result.accepted < arguments.count for result in results)
    print(f"onnx {onnx.__version__}: {len(results)} rules at {sum(r.accepted for r in results)} instances, "
          f"{sum(r.past for r in results)} of them with a size above 9, the largest "
          f"{max(r.largest for r in results)}, ranks to {max(r.rank for r in results)}: {different} differ, "
          f"{none} without an instance, {few} with fewer than {arguments.count}")
    return 1 if different + none > 0 else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError, KeyError) as error:
        print(f"second_check: {error}", file=sys.stderr)
        sys.exit(2)
