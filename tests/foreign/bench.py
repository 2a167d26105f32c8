"""`make bench-onnx`: what Graft, onnxsim and onnxslim make of models that nobody here made.

    bench.py GRAFT FOLDER EXPORTER [--only TEXT] [--skip TEXT] [--again] [--table] [--check]

Makes the models of models.txt, optimises each with all three, holds the results against the originals
and times them in onnxruntime (measure.py). What is known of a model is kept in FOLDER/results, so an
interrupted run goes on; --again does it anew, --only takes the models whose names contain the text (or
one of several, with commas), --skip leaves those out, --table only writes the table of what is there. At
the end all that is known is in FOLDER/results.jsonl and FOLDER/table.md. EXPORTER is the Python that has
PyTorch; this one has the rest.

--check times nothing, neither here nor in Graft, which alone is asked, with the costs of a recorded device:
so all that it finds does not depend on what else runs. It keeps that, and the files, in FOLDER/check.

The exit status is 1 when a file of Graft's is wrong or a model could not be looked at.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time

from models import HERE, read_list

SECONDS_MOST = {"model": 600, "graft": 600, "onnxsim": 300, "onnxslim": 300, "measure": 900}
OTHERS = ("onnxsim", "onnxslim")
RECORDED = "intel-xeon-6-167"  # Whose costs a check takes.
PROCESSOR_SECONDS_MOST = 30  # Of a check.


def run(kind, command):
    """Standard output, and the seconds of processor time. Fails with the last line of what was said."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False,
                              timeout=SECONDS_MOST[kind])
    except subprocess.TimeoutExpired as late:
        raise RuntimeError(f"did not end in {SECONDS_MOST[kind]} s") from late
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        raise RuntimeError(((done.stderr + done.stdout).strip().splitlines() or ["failed"])[-1][:200])
    return done.stdout, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


def make_model(entry, exporter, path):
    if not os.path.exists(path):
        python = exporter if entry.exported else sys.executable
        run("model", [python, os.path.join(HERE, "models.py"), entry.name, path])


def optimise(kind, arguments, model, out):
    tools = os.path.dirname(sys.executable)
    costs = (["--device", RECORDED] if arguments.check else
             ["--database", os.path.join(os.path.dirname(out), "cpu.costs")])
    command = ([arguments.graft, "optimize", model, out, "--json", "--constants", *costs] if kind == "graft" else
               [os.path.join(tools, kind), model, out])
    text, seconds = run(kind, command)
    outcome = json.loads(text.strip().splitlines()[-1]) if kind == "graft" else {}
    return {**outcome, "processor_seconds": round(seconds, 2)}


def measure(entry, model, files, options=()):
    text, _ = run("measure", [sys.executable, os.path.join(HERE, "measure.py"), *options, entry.name, model,
                              *(f"{kind}={path}" for kind, path in files.items())])
    return json.loads(text.strip().splitlines()[-1])


def bench_model(entry, arguments):
    """Makes, optimises, compares; and times, unless all that is wanted is a check."""
    model = os.path.join(arguments.folder, "models", entry.name + ".onnx")
    make_model(entry, arguments.exporter, model)
    record = {"name": entry.name, "kind": entry.kind, "failed": {}, "made": {}}
    files = {}
    for kind in ("graft",) if arguments.check else ("graft", *OTHERS):
        out = os.path.join(arguments.work, "made", f"{entry.name}.{kind}.onnx")
        try:
            if os.path.exists(out):
                os.remove(out)
            record["made"][kind] = optimise(kind, arguments, model, out)
            files[kind] = out
        except RuntimeError as fault:
            record["failed"][kind] = str(fault)
    record.update(measure(entry, model, files, ["--untimed"] if arguments.check else []))
    return record


# ------------------------------------------------------------------------------------------ results

def find_wrong(record):
    """What may not be, of Graft's file: a text, or None."""
    if "graft" in record["failed"]:
        return record["failed"]["graft"]
    if "graft" in record["faults"]:
        return record["faults"]["graft"]
    made = record["made"]["graft"]
    if made["rules_applied"] + made["simplified"] == 0 and record["changed_nodes"]["graft"] > 0:
        return f"no rule applied, {record['changed_nodes']['graft']} nodes changed"
    lost = record["lost"]["graft"]
    if lost and record["speed"].get("graft", 0.0) < 1.0:
        return "onnxruntime fuses less: " + ", ".join(lost)
    if not record["speed"] and made["processor_seconds"] > PROCESSOR_SECONDS_MOST:
        return f"took {made['processor_seconds']:.0f} s of processor time"
    return None


def list_speeds(records, kind):
    return [record["speed"][kind] for record in records if kind in record["speed"]]


def write_summary(records, lines):
    lines.append("\n| | models | geometric mean | worst | below 0.98 |\n|---|---|---|---|---|")
    for kind in ("graft", *OTHERS, "copy"):
        speeds = list_speeds(records, kind)
        if speeds:
            mean = math.exp(statistics.fmean(map(math.log, speeds)))
            lines.append(f"| {'A/A' if kind == 'copy' else kind} | {len(speeds)} | {mean:.4f} | "
                         f"{min(speeds):.3f} | {sum(speed < 0.98 for speed in speeds)} |")


def read_records(work):
    records = []
    for entry in read_list():
        path = os.path.join(work, "results", entry.name + ".json")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                records.append(json.load(file))
    return records


def make_table(records):
    lines = ["| model | ms | operators | kernels | Graft | onnxsim | onnxslim | A/A | predicted | s | wrong |",
             "|---|---|---|---|---|---|---|---|---|---|---|"]
    for record in records:
        speed = [f"{record['speed'][kind]:.3f}" if kind in record["speed"] else "-"
                 for kind in ("graft", *OTHERS, "copy")]
        made = record["made"].get("graft")
        lines.append(
            f"| {record['name']} | {record.get('milliseconds', {}).get('original', 0.0):.2f} | " +
            (f"{made['operators_before']} -> {made['operators_after']}" if made else "-") +
            f" | {record['kernels']['original']} -> {record['kernels'].get('graft', '-')}"
            f" | {' | '.join(speed)} | " +
            (f"{made['cost_ns_before'] / made['cost_ns_after']:.3f} | {made['processor_seconds']:.0f}"
             if made else "- | -") + f" | {find_wrong(record) or ''} |")
    write_summary(records, lines)
    return "\n".join(lines) + "\n"


def read_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("graft")
    parser.add_argument("folder")
    parser.add_argument("exporter")
    parser.add_argument("--only", default="")
    parser.add_argument("--skip")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    arguments.work = os.path.join(arguments.folder, "check") if arguments.check else arguments.folder
    return arguments


def is_wanted(entry, arguments):
    return (any(text in entry.name for text in arguments.only.split(",")) and
            (not arguments.skip or all(text not in entry.name for text in arguments.skip.split(","))))


def main():
    arguments = read_arguments()
    os.makedirs(os.path.join(arguments.folder, "models"), exist_ok=True)
    for name in ("made", "results"):
        os.makedirs(os.path.join(arguments.work, name), exist_ok=True)
    entries = [entry for entry in read_list() if is_wanted(entry, arguments)]
    unknown = 0
    for i, entry in enumerate([] if arguments.table else entries):
        path = os.path.join(arguments.work, "results", entry.name + ".json")
        if os.path.exists(path) and not arguments.again:
            continue
        start = time.monotonic()
        try:
            record = bench_model(entry, arguments)
        except RuntimeError as fault:
            print(f"{i + 1}/{len(entries)} {entry.name}: {fault}", file=sys.stderr, flush=True)
            unknown += 1
            continue
        with open(path + ".part", "w", encoding="utf-8") as file:
            json.dump(record, file)
        os.rename(path + ".part", path)
        print(f"{i + 1}/{len(entries)} {entry.name}: {record['speed']} "
              f"{find_wrong(record) or ''} ({time.monotonic() - start:.0f} s)",
              file=sys.stderr, flush=True)
    records = read_records(arguments.work)
    with open(os.path.join(arguments.work, "results.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    with open(os.path.join(arguments.work, "table.md"), "w", encoding="utf-8") as file:
        file.write(make_table(records))
    names = {entry.name for entry in entries}
    records = [record for record in records if record["name"] in names]
    print(make_table(records), end="")
    sys.exit(0 if unknown == 0 and all(find_wrong(record) is None for record in records) else 1)


if __name__ == "__main__":
    main()
