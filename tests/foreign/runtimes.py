"""`make bench-runtimes`: what Graft gains where models run, by the device's own costs and confirmed there.

    runtimes.py GRAFT FOLDER EXPORTER PAGE [--only TEXT] [--skip TEXT] [--columns TEXT] [--again]
                [--table] [--seconds N]

Takes the models of models.txt, with open axes fixed to the first sizes there, and the zoo's recurrent ones.
For onnxruntime on one thread and two, and for XNNPACK, each is optimised with that device and then timed
against what came out by the device's program, started anew. Graft's executor is timed against onnxruntime
on the model as it is. Every figure is kept in FOLDER/runtimes as soon as it is there, so an interrupted run
goes on; --again makes those of --only anew, --columns takes only some devices ("onnxruntime;executor, 2"). The table of all that is known replaces the one between the two
marks in PAGE.
"""

import argparse
import filecmp
import json
import math
import os
import statistics
import subprocess
import sys
import time

import onnx

from models import HERE, Entry, read_list

ZOO = ("lstm", "lstm512", "nasrnn", "nasrnn512")
COLUMNS = {  # Device, threads.
    "onnxruntime": ("onnxruntime", 1), "onnxruntime, 2": ("onnxruntime", 2), "XNNPACK": ("xnnpack", 1),
    "executor": ("executor", 1), "executor, 2": ("executor", 2),
}
OPENINGS = 3  # New processes, of
ROUNDS = 15  # each.
SECONDS_MOST = 1800
MARKS = ("<!-- runtimes -->", "<!-- end of runtimes -->")


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=SECONDS_MOST)
    if done.returncode != 0:
        raise RuntimeError(((done.stderr + done.stdout).strip().splitlines() or ["failed"])[-1][:160])
    return done.stdout


def make_model(entry, arguments):
    """The path of a copy whose axes are fixed."""
    path = os.path.join(arguments.folder, "models", entry.name + ".onnx")
    fixed = os.path.join(arguments.work, entry.name + ".onnx")
    if not os.path.exists(path):
        python = arguments.exporter if entry.exported else sys.executable
        run([arguments.graft, "--quiet", "model", entry.what, path] if entry.source == "zoo" else
            [python, os.path.join(HERE, "models.py"), entry.name, path])
    if not os.path.exists(fixed):
        model = onnx.load(path)
        for port in model.graph.input:
            shapes = entry.shapes.get(port.name)
            for dim, size in zip(port.type.tensor_type.shape.dim, shapes[0] if isinstance(shapes, list) else []):
                dim.dim_value = size
        onnx.save(model, fixed + ".part")
        os.rename(fixed + ".part", fixed)
    return fixed


def ask_device(device, threads, question):
    """One answer of a device's program, started for it (docs/devices.md)."""
    lines = "".join(json.dumps({"id": i, **asked}) + "\n"
                    for i, asked in enumerate(({"ask": "hello", "protocol": 1}, question)))
    done = subprocess.run([os.path.join(HERE, "..", "..", "devices", device), f"threads={threads}"], input=lines,
                          capture_output=True, text=True, check=False, timeout=SECONDS_MOST)
    answers = done.stdout.splitlines()
    answer = json.loads(answers[1]) if len(answers) == 2 else {"unsupported": "no answer"}
    if "unsupported" in answer:
        raise RuntimeError(answer["unsupported"][:160])
    return answer


def middle(ratios):
    """Median, and the distance between the quartiles."""
    quarters = statistics.quantiles(ratios, n=4)
    return round(quarters[1], 4), round(quarters[2] - quarters[0], 4)


def time_files(device, threads, model, out):
    """How many times faster the file is than the model, in turns; "control" is the model itself."""
    speeds, controls, times = [], [], []
    for _ in range(OPENINGS):
        rounds = ask_device(device, threads, {"ask": "time_models", "models": [model, out, model], "inputs": {},
                                              "rounds": ROUNDS})["rounds_ns"]
        speeds += [old / new for old, new in zip(rounds[0], rounds[1])]
        controls += [old / new for old, new in zip(rounds[0], rounds[2])]
        times += rounds[0]
    speed, spread = middle(speeds)
    return {"ms": statistics.median(times) / 1e6, "speed": speed, "spread": spread, "control": middle(controls)[0]}


def bench_device(model, device, threads, arguments):
    out = f"{model[:-len('.onnx')]}.{device}.{threads}.onnx"
    costs = os.path.join(arguments.work, f"{device}.costs")
    text = run([arguments.graft, "optimize", model, out, "--json", "--device", device, "--threads", str(threads),
                "--constants", "--seconds", str(arguments.seconds), "--database", costs])
    made = json.loads(text.strip().splitlines()[-1])
    # What did not change is as fast as it was; nothing has to be timed.
    same = filecmp.cmp(model, out, shallow=False)
    timed = time_files(device, threads, model, model if same else out)
    record = {**timed, "rewrites": made["rules_applied"], "unchanged": same}
    return {**record, "speed": 1.0, "spread": 0.0} if same else record


def bench_executor(model, threads, arguments):
    """Processes of the executor and of onnxruntime take turns."""
    ours, theirs = [], []
    for _ in range(OPENINGS):
        text = run([arguments.graft, "run", model, "--bench", "--json", "--rounds", str(ROUNDS), "--threads",
                    str(threads)])
        ours.append(json.loads(text.strip().splitlines()[-1])["median_ns"])
        rounds = ask_device("onnxruntime", threads, {"ask": "time_models", "models": [model], "inputs": {},
                                                     "rounds": ROUNDS})["rounds_ns"][0]
        theirs.append(statistics.median(rounds))
    speeds = [their / our for our, their in zip(ours, theirs)]
    return {"ms": statistics.median(ours) / 1e6, "speed": round(statistics.median(speeds), 4),
            "spread": round(max(speeds) - min(speeds), 4)}


# ------------------------------------------------------------------------------------------ results

def say_cell(record, column):
    cell = record.get(column)
    if cell is None:
        return ""
    if "failed" in cell:
        return "–"
    if cell.get("unchanged"):
        return "as it was"
    return f"{cell['speed']:.3f} ± {cell['spread']:.3f}"


def make_table(records):
    lines = ["| model | ms | " + " | ".join(COLUMNS) + " |", "|---" * (2 + len(COLUMNS)) + "|"]
    for record in records:
        milliseconds = record.get("onnxruntime", {}).get("ms")
        lines.append(f"| {record['name']} | {'' if milliseconds is None else f'{milliseconds:.2f}'} | " +
                     " | ".join(say_cell(record, column) for column in COLUMNS) + " |")
    known = {column: [record[column]["speed"] for record in records if "speed" in record.get(column, {})]
             for column in COLUMNS}
    for label, figure in (
            ("models", len),
            ("geometric mean", lambda speeds: f"{math.exp(statistics.fmean(map(math.log, speeds))):.3f}"),
            ("more than 3 % faster", lambda speeds: sum(speed > 1.03 for speed in speeds)),
            ("below 0.98", lambda speeds: sum(speed < 0.98 for speed in speeds))):
        lines.append(f"| **{label}** | | " +
                     " | ".join(str(figure(speeds)) if speeds else "" for speeds in known.values()) + " |")
    return "\n".join(lines) + "\n"


def write_whole(path, text):
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.rename(path + ".part", path)


def write_page(page, table):
    with open(page, encoding="utf-8") as file:
        before, _, rest = file.read().partition(MARKS[0])
    _, mark, after = rest.partition(MARKS[1])
    if not mark:
        raise SystemExit(f"{page}: there are no marks {MARKS[0]} and {MARKS[1]}")
    write_whole(page, f"{before}{MARKS[0]}\n{table}{mark}{after}")


def read_record(path, name):
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    return {"name": name}


def bench_model(entry, arguments, path):
    record = {"name": entry.name} if arguments.again else read_record(path, entry.name)
    for column, (device, threads) in COLUMNS.items():
        if column in record or column not in arguments.columns.split(";"):
            continue
        start = time.monotonic()
        try:
            model = make_model(entry, arguments)
            record[column] = (bench_executor(model, threads, arguments) if device == "executor" else
                              bench_device(model, device, threads, arguments))
        except (RuntimeError, subprocess.TimeoutExpired) as fault:
            record[column] = {"failed": str(fault)[:200]}
        write_whole(path, json.dumps(record))
        print(f"{entry.name}: {column}: {record[column]} ({time.monotonic() - start:.0f} s)", file=sys.stderr,
              flush=True)


def read_arguments():
    parser = argparse.ArgumentParser()
    for name in ("graft", "folder", "exporter", "page"):
        parser.add_argument(name)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip")
    parser.add_argument("--columns", default=";".join(COLUMNS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--seconds", type=int, default=300)
    arguments = parser.parse_args()
    arguments.work = os.path.join(arguments.folder, "runtimes")
    return arguments


def main():
    arguments = read_arguments()
    for folder in (os.path.join(arguments.folder, "models"), arguments.work):
        os.makedirs(folder, exist_ok=True)
    entries = [Entry(f"zoo-{name} recurrent zoo {name}") for name in ZOO] + read_list()
    paths = {entry.name: os.path.join(arguments.work, entry.name + ".json") for entry in entries}
    for entry in [] if arguments.table else entries:
        if any(text in entry.name for text in arguments.only.split(",")) and not (
                arguments.skip and any(text in entry.name for text in arguments.skip.split(","))):
            bench_model(entry, arguments, paths[entry.name])
    table = make_table([read_record(path, name) for name, path in paths.items() if os.path.exists(path)])
    write_page(arguments.page, table)
    print(table, end="")


if __name__ == "__main__":
    main()
