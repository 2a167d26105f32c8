#!/usr/bin/env python3
"""Writes reference.inc: numbers for tests/train computed in double precision straight from the
formulas, independently of the C code. Run it only to change the cases:

    python3 tests/train/reference.py > tests/train/reference.inc
"""
import math


def wave(count, frequency, height=1.0):
    """Inputs: a sine, rounded to what a float holds exactly (12 bits)."""
    return [round(height * math.sin(frequency * (i + 1)) * 4096) / 4096 for i in range(count)]


def emit(name, values):
    print(f"static const double {name}[{len(values)}] = {{")
    for i in range(0, len(values), 4):
        print("    " + " ".join(f"{v.hex()}," for v in values[i:i + 4]))
    print("};")


def logistic(x):
    return 1 / (1 + math.exp(-x))


def lstm(gates, weight, steps, batch, hidden):
    h = [[0.0] * hidden for _ in range(batch)]
    c = [[0.0] * hidden for _ in range(batch)]
    out = []
    for t in range(steps):
        for b in range(batch):
            row = gates[(t * batch + b) * 4 * hidden:][:4 * hidden]
            pre = [row[k] + sum(h[b][j] * weight[j * 4 * hidden + k] for j in range(hidden))
                   for k in range(4 * hidden)]
            for j in range(hidden):
                i, f, o = (logistic(pre[g * hidden + j]) for g in (0, 1, 3))
                c[b][j] = f * c[b][j] + i * math.tanh(pre[2 * hidden + j])
                pre[3 * hidden + j] = o  # keep: h is only written after all gates are read
            h[b] = [pre[3 * hidden + j] * math.tanh(c[b][j]) for j in range(hidden)]
        for b in range(batch):
            out += h[b]
    return out


def mixture_nll(raw, target, dims, components, floor):
    total = 0.0
    for d in range(dims):
        logits = [raw[k * dims + d] for k in range(components)]
        log_z = math.log(sum(math.exp(x) for x in logits))
        density = 0.0
        for k in range(components):
            mean = raw[(components + k) * dims + d]
            sigma = floor + math.exp(raw[(2 * components + k) * dims + d])
            density += math.exp(logits[k] - log_z) / (sigma * math.sqrt(2 * math.pi)) * \
                math.exp(-0.5 * ((target[d] - mean) / sigma) ** 2)
        total -= math.log(density)
    return total


def log_softmax(x, mask):
    log_z = math.log(sum(math.exp(v) for v, m in zip(x, mask) if m))
    return [v - log_z if m else -1e30 for v, m in zip(x, mask)]


def adam(value, gradients, rate, most):
    m = [0.0] * len(value)
    v = [0.0] * len(value)
    for t, g in enumerate(gradients, 1):
        norm = math.sqrt(sum(x * x for x in g))
        g = [x * min(1.0, most / norm) for x in g]
        m = [0.9 * a + 0.1 * b for a, b in zip(m, g)]
        v = [0.999 * a + 0.001 * b * b for a, b in zip(v, g)]
        value = [x - rate * (a / (1 - 0.9 ** t)) / (math.sqrt(b / (1 - 0.999 ** t)) + 1e-8)
                 for x, a, b in zip(value, m, v)]
    return value


def gae(reward, value, bootstrap, discount, lam):
    out = []
    for t in range(len(reward)):
        total = 0.0
        for k in range(t, len(reward)):
            after = value[k + 1] if k + 1 < len(reward) else bootstrap
            total += (discount * lam) ** (k - t) * (reward[k] + discount * after - value[k])
        out.append(total)
    return out


def main():
    print("/* reference.inc - written by tests/train/reference.py; do not edit. */")
    print("/* clang-format off */")
    gates, weight = wave(6 * 8, 0.9, 1.5), wave(2 * 8, 1.7)
    emit("reference_lstm_gates", gates)
    emit("reference_lstm_weight", weight)
    emit("reference_lstm_out", lstm(gates, weight, 3, 2, 2))
    raw, target = wave(3 * 3 * 4, 0.77, 1.2), wave(4, 2.3)
    emit("reference_mixture_raw", raw)
    emit("reference_mixture_target", target)
    emit("reference_mixture_nll", [mixture_nll(raw, target, 4, 3, 0.0625)])
    logits = wave(6, 1.3, 3.0)
    emit("reference_logits", logits)
    emit("reference_log_p", log_softmax(logits, [1, 1, 0, 1, 0, 1]))
    start, gradients = wave(4, 1.1), [wave(4, 0.5 + t, 2.0) for t in range(5)]
    emit("reference_adam_start", start)
    emit("reference_adam_gradients", sum(gradients, []))
    emit("reference_adam_end", adam(start, gradients, 0.0625, 1.5))
    reward, value = wave(5, 0.6, 2.0), wave(5, 1.9)
    emit("reference_gae_reward", reward)
    emit("reference_gae_value", value)
    emit("reference_gae_advantage", gae(reward, value, 0.75, 0.99, 0.95))


main()
