"""evaluation.py - the page of `make eval`: what `graft eval` found, as tables and plots.

    python3 emit/bench/evaluation.py FOLDER PAGE DEVICE

Reads FOLDER/cells.jsonl (evaluation.h says what a cell is) and, of agents that dream,
FOLDER/dreams/MODEL-SEED.jsonl, which `graft bench agents --metrics` wrote. Writes the page, and data and
gnuplot scripts of its plots into the folder. DEVICE is the one whose costs these are.
"""
import json
import math
import pathlib
import sys

# Rows of tables, in this order; what else there is comes behind. Rollouts at a temperature have a table of
# their own.
METHODS = ["policy", "unseen", "table", "refined", "guided", "greedy", "escape", "beam 8", "beam 64",
           "annealing", "iterated", "saturation", "backtracking 1000", "backtracking 50000", "backtracking equal time"]
TEMPERATURES = ["sampled 0.1", "sampled 0.3", "sampled 1", "sampled 3"]
SHOWN = ["greedy", "policy", "unseen", "refined", "guided"]  # In the plot of costs.
RULES_MOST = 24
SEEDS_MOST = 9
# Student's t for 95 %, by degrees of freedom.
QUANTILES = [0, 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228]

HEAD = """# Evaluation

`make eval` writes this page: what each method finds on each model, by the recorded costs of
`{device}`, leveled ([cost.md](cost.md), *Leveling*): what twins differ by is noise. A method's row is
explained in [agent.md](agent.md).

* *policy*: the committed policy for many models, alone in the engine's own loop; no price is asked.
* *unseen*: a policy made in the same way without any model of the family, so that every price is
  guessed.
* *table*: greedy over a table of the model's own rows as they were measured: no learning, but the
  prices of all that walks met.
* *refined*: what `graft policy MODEL` ships: the better of policy and refined policy, in that loop.
* *guided*: search that the policy's table guides, at most 2000 graphs priced.
* Searches price graphs of no more estimates than the graph as given, each for at most the seconds of
  `--seconds`.
* `+`: cut by the time, so another machine finds another graph. (e): rests on more estimates than the
  graph as given, no result. ±: half of the interval that holds the mean over seeds with 95 %. –: not
  run.

"""


class Summary:
    """The cells of a model and a method, over seeds; costs in percent of the graph as given."""

    def __init__(self, cells):
        costs = [100.0 * cell["cost_ns"] / cell["first_ns"] for cell in cells]
        count = len(cells)
        self.mean = sum(costs) / count
        self.least, self.worst = min(costs), max(costs)
        squares = sum((cost - self.mean) ** 2 for cost in costs)
        quantile = QUANTILES[count - 1] if count <= len(QUANTILES) else 2.0
        self.half = quantile * math.sqrt(squares / (count - 1) / count) if count > 1 else 0.0
        self.graphs, self.seconds, self.steps, self.peak = (
            sum(cell[key] for cell in cells) / count for key in ("graphs", "seconds", "steps", "peak_bytes"))
        runs = [(cell["measured"], cell["measured_spread"]) for cell in cells if cell["measured"] > 0]
        self.run = runs[-1] if runs else None
        self.cut = any(cell["cut"] for cell in cells)
        self.estimated = any(cell["estimates"] > cell["first_estimates"] for cell in cells)

    def cost(self):
        interval = f" ± {self.half:.2f}" if self.half >= 0.005 else ""
        return f"{self.mean:.2f}{interval}{'+' if self.cut else ''}{' (e)' if self.estimated else ''}"


class Evaluation:
    def __init__(self, folder):
        self.folder = folder
        self.cells = [json.loads(line) for line in open(folder / "cells.jsonl")]
        self.models = list(dict.fromkeys(cell["model"] for cell in self.cells))
        methods = dict.fromkeys(cell["method"] for cell in self.cells)
        self.methods = METHODS + [m for m in methods if m not in METHODS + TEMPERATURES + ["as given"]]
        self.summaries = {}
        for cell in self.cells:
            self.summaries.setdefault((cell["model"], cell["method"]), []).append(cell)
        self.summaries = {key: Summary(cells) for key, cells in self.summaries.items()}

    def of(self, model, method):
        return self.summaries.get((model, method))

    def write(self, name, text):
        (self.folder / name).write_text(text)

    def table(self, methods, show):
        """A row for each method, a column for each model; `show` gives None where there is nothing."""
        text = "| | " + " | ".join(self.models) + " |\n|---|" + "---|" * len(self.models) + "\n"
        for method in methods:
            summaries = [self.of(model, method) for model in self.models]
            fields = [summary and show(summary) for summary in summaries]
            if any(fields):
                text += f"| {method} | " + " | ".join(field or "–" for field in fields) + " |\n"
        return text + "\n"


# ------------------------------------------------------------------------------------------- tables


def goals(evaluation):
    """How far the policy and what begins with it are from greedy and from the best known."""
    text = """## Goals

Points of cost. Of what is drawn: the mean, and the worst seed. *Best known* is the cheapest graph of any
row above, without more estimates than the graph as given.

| | best known | by | greedy over it | policy − greedy | unseen − greedy | refined − greedy | worst | guided − best known | worst |
|---|---|---|---|---|---|---|---|---|---|
"""
    for model in evaluation.models:
        known = [cell for cell in evaluation.cells
                 if cell["model"] == model and cell["estimates"] <= cell["first_estimates"]]
        greedy = evaluation.of(model, "greedy")
        if not known or greedy is None:
            continue
        best = min(known, key=lambda cell: cell["cost_ns"])
        least = 100.0 * best["cost_ns"] / best["first_ns"]
        fields = [f"{greedy.mean - least:+.2f}"]
        for method, whats, base in [("policy", ["mean"], greedy.mean), ("unseen", ["mean"], greedy.mean),
                                    ("refined", ["mean", "worst"], greedy.mean),
                                    ("guided", ["mean", "worst"], least)]:
            summary = evaluation.of(model, method)
            fields += [f"{getattr(summary, what) - base:+.2f}" if summary else "–" for what in whats]
        text += f"| {model} | {least:.2f} | {best['method']} | " + " | ".join(fields) + " |\n"
    return text + "\n"


def whole(evaluation):
    """What was run whole, and memory."""
    text = ""
    if any(summary.run for summary in evaluation.summaries.values()):
        text = """## Measured

The graphs themselves, run in Graft's executor in turns with the graph as given on the processor whose
costs these are, one thread: median of the ratios of rounds and the distance between their quartiles,
percent. Of what is drawn, the first seed.

""" + evaluation.table(evaluation.methods, lambda s: s.run and f"{100 * s.run[0]:.1f} ± {100 * s.run[1]:.1f}")
    return text + """## Peak memory

Of activations, as planned for the cheapest layouts, MB; the mean over seeds.

""" + evaluation.table(["as given"] + evaluation.methods,
                       lambda s: f"{s.peak / 1e6:.3f}" if s.peak < 1e6 else f"{s.peak / 1e6:.1f}")


def sampled(evaluation):
    """Rollouts at a temperature, and where what they are led to ends beside the policy's own way."""
    pairs = [(evaluation.of(model, "policy"), evaluation.of(model, "sampled 3")) for model in evaluation.models]
    near = [led.mean <= own.mean + 1.0 for own, led in pairs if own and led]
    text = """## Temperature

One rollout of the policy's table, steps drawn by a softmax over what they gain, in units of a thousandth
of the cost times the temperature.

""" + evaluation.table(TEMPERATURES, Summary.cost)
    if near:
        text += f"""Steps that are drawn lead to states of the graph where the policy's own way does not come by. At
temperature 3 it ends at most a point dearer from there on {sum(near)} of {len(near)} models, in the mean.

"""
    return text + "![cost by temperature](evaluation/temperature.svg)\n\n"


# -------------------------------------------------------------------------------------------- plots


def terminal(name, height):
    return f"set terminal svg size 900,{height} font 'sans,11' background 'white'\nset output '{name}.svg'\n"


def plot_costs(evaluation):
    """Costs by model, a group of bars each."""
    data = ""
    for model in evaluation.models:
        shown = [evaluation.of(model, method) for method in SHOWN]
        data += model + "".join(f",{s.mean:.3f},{s.least:.3f},{s.worst:.3f}" if s else ",NaN,NaN,NaN" for s in shown)
        data += "\n"
    evaluation.write("costs.csv", data)
    bars = ", ".join(f"'costs.csv' using {3 * i + 2}:{3 * i + 3}:{3 * i + 4}:xtic(1) title '{method}'"
                     for i, method in enumerate(SHOWN))
    evaluation.write("costs.gp", terminal("costs", 420) + f"""set datafile separator ','
set style data histograms
set style histogram errorbars gap 1 lw 1
set style fill solid 0.8
set bars 0.5
set yrange [60:102]
set ylabel 'cost, percent of the graph as given'
set grid ytics
set key top left horizontal
set xtics rotate by 30 right
plot {bars}
""")


def plot_temperatures(evaluation):
    """Sampled rollouts by temperature, a line for each model."""
    data = ""
    for method in TEMPERATURES:
        costs = [evaluation.of(model, method) for model in evaluation.models]
        data += method.split()[1] + "".join(f",{s.mean:.3f}" if s else ",NaN" for s in costs) + "\n"
    evaluation.write("temperature.csv", data)
    lines = ", ".join(f"'temperature.csv' using 1:{m + 2} with linespoints title '{model}'"
                      for m, model in enumerate(evaluation.models))
    evaluation.write("temperature.gp", terminal("temperature", 420) + f"""set datafile separator ','
set logscale x
set xlabel 'temperature'
set ylabel 'cost, percent'
set grid
set key outside right
plot {lines}
""")


def plot_rules(evaluation):
    """A heatmap of greedy's rules: the most used ones by model."""
    uses = {}
    for cell in evaluation.cells:
        for rule, times in cell["rules"].items() if cell["method"] == "greedy" else []:
            uses.setdefault(rule, {})[cell["model"]] = times
    if not uses:
        return ""
    most = sorted(uses, key=lambda rule: (-sum(uses[rule].values()), rule))[:RULES_MOST]
    data = "rule," + ",".join(evaluation.models) + "\n"
    for rule in most:
        data += f'"{rule}",' + ",".join(str(uses[rule].get(model, 0)) for model in evaluation.models) + "\n"
    evaluation.write("rules.csv", data)
    evaluation.write("rules.gp", terminal("rules", 560) + """set datafile separator ','
set title 'How often greedy search applies a rule'
set xtics rotate by 45 right
set ytics noenhanced
set palette defined (0 'white', 1 '#9ecae1', 10 '#3182bd', 40 '#08306b')
set yrange [*:*] reverse
plot 'rules.csv' matrix rowheaders columnheaders using 1:2:3 with image notitle
""")
    return f"""## Rules

Of greedy search's plans, the {len(most)} rules that are applied most.

![rules by model](evaluation/rules.svg)

"""


# ------------------------------------------------------------------------------------------- dreams

# As bench_agents.c names them.
ON_PRICES, ON_TABLE, IN_ENVIRONMENT, IN_DREAMS = ORIGINS = [
    "greedy over prices", "greedy over the tariff", "candidates", "candidates, dreams"]
FIGURES = [("reward_explained", 2), ("by_mean_of_rule", 2), ("changed_f1_1", 2), ("changed_f1_8", 2),
           ("dreamed", 1), ("real", 1)]


class Dreamt:
    """A model that an agent was trained on, over seeds. A run that was interrupted has no gates and does
    not count."""

    def __init__(self, folder, model):
        self.name = model
        self.seeds = []
        for seed in range(1, SEEDS_MOST + 1):
            path = folder / "dreams" / f"{model}-{seed}.jsonl"
            lines = [json.loads(line) for line in open(path)] if path.exists() else []
            if any(line["kind"] == "gates" and line["model"] == "all" for line in lines):
                self.seeds.append(lines)
        self.gates = [next(line for line in lines if line["kind"] == "gates" and line["model"] == "all")
                      for lines in self.seeds]

    def results(self, method, key):
        return [line[key] for lines in self.seeds for line in lines
                if line["kind"] == "result" and line["method"] == method]

    def costs(self, method):
        return [100.0 * part for part in self.results(method, "cost_part")]

    def rows(self, kind, keys):
        """Of the first seed, as plot data."""
        return "".join(" ".join(f"{line[key]:.5g}" for key in keys) + "\n"
                       for line in self.seeds[0] if line["kind"] == kind)


def mean(values):
    return sum(values) / len(values)


def interval(values, decimals):
    """The mean over seeds, and from where to where if that shows in so many decimals."""
    text = f"{mean(values):.{decimals}f}"
    if max(values) - min(values) >= 10.0 ** -decimals:
        text += f" ({min(values):.{decimals}f} to {max(values):.{decimals}f})"
    return text


def gates(models):
    text = """### Can the environment be modelled, and its rewards?

Held against episodes that it has not seen: the part of the variance of rewards that the world model
explains (in brackets by the mean of the rule), how well it tells which candidates a rewrite closes and
opens (F1, one step and eight steps into a dream), and the mean return of dreams and of episodes by the
same policy, percent of the cost. *Gates*: seeds with which rewards explain 0.3 more than the mean of the
rule or 0.99, changes have 0.9 one step ahead, and returns are within a tenth.

| | seeds | reward explained | (by rule) | changes, 1 ahead | 8 ahead | dreamed | real | gates |
|---|---|---|---|---|---|---|---|---|
"""
    for model in models:
        fields = [interval([line[key] for line in model.gates], decimals) for key, decimals in FIGURES]
        text += (f"| {model.name} | {len(model.gates)} | " + " | ".join(fields) +
                 f" | {sum(line['hold'] for line in model.gates)} of {len(model.gates)} |\n")
    faithful = sum(all(line["hold"] for line in model.gates) for model in models)
    return text + f"""
With every seed they hold on {faithful} of {len(models)} models.

![what the world model says of a step, and what it brings](evaluation/rewards.svg)

Each dot is a step of an episode that it has not seen, first seed.

"""


def agents(models):
    text = """### Does what dreams teach hold outside?

From the same start, a table of the model's own node costs: PPO in the environment, which asks for the
price of each step, and PPO in dreams of the world model, whose real steps are the episodes that it was
made from and trials. Percent of the graph as given; most likely actions; mean over seeds, from the best to
the worst.

| | greedy over prices | the table alone | in the environment | real steps | in dreams | real steps |
|---|---|---|---|---|---|---|
"""
    logs = 0.0
    for model in models:
        steps = {method: sum(model.results(method, "interactions")) for method in ORIGINS}
        fields = []
        for method in ORIGINS:
            fields.append(interval(model.costs(method), 2))
            if method in (IN_ENVIRONMENT, IN_DREAMS):
                fields.append(f"{steps[method] / len(model.seeds):.0f}")
        text += f"| {model.name} | " + " | ".join(fields) + " |\n"
        logs += math.log(steps[IN_DREAMS] / steps[IN_ENVIRONMENT])
    level = sum(mean(model.costs(IN_DREAMS)) <= mean(model.costs(IN_ENVIRONMENT)) + 0.1 for model in models)
    return text + f"""
On {level} of {len(models)} models dreams end at most 0.1 points above the environment, with
{100.0 * math.exp(logs / len(models)):.0f} % of its real steps (geometric mean).

![training curves](evaluation/training.svg)

Percent saved by update, first seed: mean of the episodes learnt from, mean of the dreams, and what the
policy of the dreams saves when it is tried.

"""


def write_grid(evaluation, name, before, plots, blocks):
    """A small plot for each model, three in a row. `blocks` are parts of the data."""
    rows = (len(plots) + 2) // 3
    evaluation.write(f"{name}.dat", "".join(f"{block}\n\n" for block in blocks))
    evaluation.write(f"{name}.gp", terminal(name, 200 * rows) + f"set multiplot layout {rows},3\nset grid\n"
                     "set title noenhanced\n" + before + "".join(plots) + "unset multiplot\n")


def dreams(evaluation):
    models = [Dreamt(evaluation.folder, model) for model in evaluation.models]
    models = [model for model in models if model.seeds]
    if not models:
        return ""
    curves = ("set title '{0}'\nset key {1}\nplot 'training.dat' index {2} using 1:2 with lines lw 2 title "
              "'environment', '' index {3} using 1:2 with lines lw 2 title 'dreams', '' index {3} using 1:3 with "
              "points pt 7 ps 0.4 title 'tried'\n")
    write_grid(evaluation, "training", "",
               [curves.format(model.name, "off" if m > 0 else "above samplen 2", 2 * m, 2 * m + 1)
                for m, model in enumerate(models)],
               [block for model in models
                for block in (model.rows("update", ["update", "saved"]),
                              model.rows("dream", ["update", "dreamed", "lived"]))])
    write_grid(evaluation, "rewards", "set key off\nset xlabel 'real'\nset ylabel 'said'\n",
               [f"set title '{model.name}'\nplot 'rewards.dat' index {m} using 1:2 with points pt 7 ps 0.3, x "
                "with lines lc 'gray'\n" for m, model in enumerate(models)],
               [model.rows("reward", ["real", "said"]) for model in models])
    return ("## Dreams\n\nAn agent for one model each, trained by `graft bench agents MODEL --dreams`.\n\n" +
            gates(models) + agents(models))


def main(folder, page, device):
    evaluation = Evaluation(pathlib.Path(folder))
    text = HEAD.format(device=device)
    text += "## Cost\n\nPercent of the graph as given.\n\n" + evaluation.table(evaluation.methods, Summary.cost)
    text += ("![cost by model](evaluation/costs.svg)\n\nBars: the mean over seeds; whiskers: best and worst seed."
             "\n\n")
    text += goals(evaluation) + whole(evaluation)
    text += """## Graphs priced

All real interactions, those of refining and of walks included; not those that the committed policy was made
of.

""" + evaluation.table(evaluation.methods, lambda s: f"{s.graphs:.0f}")
    text += "## Rewrites\n\n" + evaluation.table(evaluation.methods, lambda s: f"{s.steps:.0f}")
    text += """## Seconds

Of deciding or searching, matching and pricing included, one thread; in one run, not in turns.

""" + evaluation.table(evaluation.methods, lambda s: f"{s.seconds:.3f}" if s.seconds < 1.0 else f"{s.seconds:.1f}")
    text += sampled(evaluation)
    plot_costs(evaluation)
    plot_temperatures(evaluation)
    text += plot_rules(evaluation) + dreams(evaluation)
    part = pathlib.Path(page + ".part")
    part.write_text(text[:-1])
    part.replace(page)


if __name__ == "__main__":
    main(*sys.argv[1:])
