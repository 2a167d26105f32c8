/* What `graft optimize` or a policy did: headline, graphs, rewrites, times, roofline, methods, origin. */

/* ------------------------------------------------------------------- numbers */

const digits = (value, count) => value.toLocaleString("en", { minimumFractionDigits: count, maximumFractionDigits: count });
function time(ns) {
  const size = Math.abs(ns);
  if (size >= 1e6) return `${digits(ns / 1e6, 3)}\u00a0ms`;
  return size >= 1e3 ? `${digits(ns / 1e3, 2)}\u00a0\u00b5s` : `${digits(ns, 1)}\u00a0ns`;
}
const change = (ns) => (ns === 0 ? "0" : (ns > 0 ? "+" : "\u2212") + time(Math.abs(ns)));
function large(value) {
  for (const [unit, by] of [["G", 1e9], ["M", 1e6], ["k", 1e3]]) {
    if (value >= by) return `${digits(value / by, value >= 100 * by ? 0 : value >= 10 * by ? 1 : 2)}\u00a0${unit}`;
  }
  return digits(value, 0);
}
function percent(part) {
  const text = digits(Math.abs(100 * part), 1);
  return `${Number(text) === 0 ? "" : part > 0 ? "+" : "\u2212"}${text}\u00a0%`;
}

function table(heads, lines) {
  const cell = (name, value, right) => element(name, right ? { class: "number" } : {}, value);
  const head = element("tr", {}, ...heads.map((h) => cell("th", h.name, h.right)));
  const body = lines.map((line) => element("tr", {}, ...line.map((value, i) => cell("td", value, heads[i].right))));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

/* --------------------------------------------------------------------- costs */

/* Kernels of both sides: one row for what both run, with a count for each. */
function joinCosts() {
  const kernels = [], known = new Map();
  const take = (row, side) => {
    let kernel = row.what && known.get(row.what);
    if (!kernel) {
      kernel = { ...row, before: 0, after: 0 };
      kernels.push(kernel);
      known.set(row.what, kernel);
    }
    kernel[side] += row.count;
  };
  data.costs_before.forEach((row) => take(row, "before"));
  data.costs_after.forEach((row) => take(row, "after"));
  return kernels;
}
const kernels = joinCosts();
const sumOf = (value) => kernels.reduce((sum, kernel) => sum + value(kernel), 0);
/* Errors of different kernels are independent, those of one kernel are the same wherever it runs. */
const spreadOf = (count) => Math.sqrt(sumOf((kernel) => (count(kernel) * kernel.spread) ** 2));
const estimated = (side) => sumOf((kernel) => (kernel.measured ? 0 : kernel[side]));

/* ------------------------------------------------------------------ headline */

function figure(label, from, to, note) {
  at("figures").append(element("div", { class: "figure" },
    element("div", { class: "label" }, label),
    element("div", { class: "value" }, element("span", { class: "from" }, `${from} `), `\u2192\u00a0${to}`),
    element("div", { class: "note" }, note)));
}
const ratio = (key) => (data.given[key] > 0 ? data.made[key] / data.given[key] - 1 : 0);

function showHeadline() {
  const saved = data.given.ns - data.made.ns;
  const spread = spreadOf((kernel) => kernel.before - kernel.after);
  const steps = data.steps.length;
  document.title = `${data.model}: Graft report`;
  at("title").textContent = data.model;
  at("lead").textContent = data.unchanged
    ? "Nothing that was found is better: the model was written as it was."
    : `${steps} rewrite${steps === 1 ? "" : "s"}, ${data.simplified > 0 ? `after ${data.simplified} that only simplified, ` : ""}${data.policy ? `decided by the policy ${data.method}` : `found by ${data.method} search`}.`;
  figure("Predicted time", time(data.given.ns), time(data.made.ns),
    `${percent(ratio("ns"))}, ${saved >= 0 ? "saves" : "adds"} ${time(Math.abs(saved))} \u00b1 ${time(spread)}${Math.abs(saved) <= spread && spread > 0 ? ": within its spread" : ""}`);
  figure("Operators", data.given.operators, data.made.operators, "nodes of the ONNX file");
  figure("Operations", large(data.given.flops), large(data.made.flops), `FLOPs, ${percent(ratio("flops"))}`);
  figure("Bytes moved", large(data.given.bytes), large(data.made.bytes), `read and written, ${percent(ratio("bytes"))}`);
  figure("Parameters", large(data.given.parameters), large(data.made.parameters), percent(ratio("parameters")));
  const count = (side) => sumOf((kernel) => kernel[side]);
  const trust = `By the costs of ${data.device}, of which ${estimated("before")} of ${count("before")} before and ${estimated("after")} of ${count("after")} after are estimates. ` +
    "The \u00b1 is the spread between quartiles of what differs. " +
    (data.checks > 0
      ? `Both files were run on ${data.checks} random input${data.checks > 1 ? "s" : ""}: outputs agree, the largest difference is ${data.difference.toPrecision(2)} of the largest magnitude.`
      : `Outputs were not compared: ${data.methods.length > 0 ? "graft report" : "--check N"} does that.`) +
    (data.sizes.length > 0 ? ` The model leaves sizes open; shapes and times are those at ${data.sizes.map((size) => `${size.name} = ${size.value}`).join(", ")}.` : "") +
    (data.cut ? " A limit on time ended the search: another run may find something else." : "");
  /* An option is not broken after its hyphens. */
  at("trust").append(...trust.split(/(--check N)/).map((part, i) => (i % 2 === 0 ? part : element("code", { class: "whole" }, part))));
}

/* -------------------------------------------------------------------- graphs */

const steps = data.steps;
/* For each step the steps that it builds on, itself among them. */
const lineage = steps.map(() => null);
steps.forEach((step, i) => {
  lineage[i] = new Set([i + 1]);
  for (const root of step.roots) lineage[root - 1].forEach((earlier) => lineage[i].add(earlier));
});
/* Whether a node belongs to a step: in the graph before when the step, or one that it builds on,
 * removed it; in the graph after when the step made it, or one that builds on it did. */
const belongs = {
  before: (node, step) => node.step > 0 && lineage[step - 1].has(node.step),
  after: (node, step) => node.step > 0 && lineage[node.step - 1].has(step),
};

/* Places of the nodes by `dot -Tplain`, one list a graph; inches, y upwards. */
function readLayout(text) {
  const INCH = 72, graphs = [];
  let graph = null;
  for (const line of text.split("\n")) {
    const words = line.split(" ");
    const number = (i) => Number(words[i]) * INCH;
    if (words[0] === "graph") {
      graph = { width: number(2), height: number(3), nodes: [], edges: [] };
      graphs.push(graph);
    } else if (words[0] === "node") {
      graph.nodes[words[1].slice(1)] = { x: number(2), y: graph.height - number(3), w: number(4), h: number(5) };
    } else if (words[0] === "edge") {
      const points = [];
      for (let k = 0; k < Number(words[3]); k++) points.push(`${number(4 + 2 * k).toFixed(1)} ${(graph.height - number(5 + 2 * k)).toFixed(1)}`);
      graph.edges.push(`M${points[0]}C${points.slice(1).join(" ")}`);
    }
  }
  return graphs;
}

function tellNode(side, node) {
  const changed = side === "before" ? "removed by" : "made by";
  const how = node.step === 0 ? "" : node.step < 0 ? `; ${changed} simplification` : `; ${changed} rewrite ${node.step}, ${data.rules[steps[node.step - 1].rule].name}`;
  return `${node.op}${node.name ? ` ${node.name}` : ""}${node.shape ? ` [${node.shape}]` : ""}${how}`;
}

/* A graph that is drawn, moved and zoomed. */
function makeView(side, layout) {
  const box = at(side), nodes = data[side];
  const marker = shape("marker", { id: `tip-${side}`, viewBox: "0 0 6 6", refX: 0, refY: 3, markerWidth: 6, markerHeight: 6, orient: "auto" }, shape("path", { d: "M0 0L6 3L0 6z" }));
  const svg = shape("svg", { class: "graph", viewBox: `-4 -4 ${layout.width + 8} ${layout.height + 8}` }, shape("defs", {}, marker));
  for (const edge of layout.edges) svg.append(shape("path", { d: edge, "marker-end": `url(#tip-${side})` }));
  const groups = nodes.map((node, i) => {
    const place = layout.nodes[i];
    const kind = node.kind === "node" ? "node" : "end node";
    const changed = node.step === 0 ? "" : side === "before" ? " gone" : " made";
    const group = shape("g", { class: kind + changed, "data-node": i },
      shape("rect", { x: place.x - place.w / 2, y: place.y - place.h / 2, width: place.w, height: place.h, rx: 4 }),
      shape("text", { x: place.x, y: place.y - 2 }, shorten(node.kind === "node" ? node.op : node.name || node.op, 22)),
      shape("text", { class: "small", x: place.x, y: place.y + 11 }, shorten(node.shape, 22)),
      shape("title", {}, tellNode(side, node)));
    svg.append(group);
    return group;
  });
  box.append(svg);
  const view = { box, svg, nodes, groups, layout, zoom: 1, side };
  fit(view, 0.75);
  return view;
}

function setZoom(view, zoom) {
  const { box, svg, layout } = view;
  const middle = [(box.scrollLeft + box.clientWidth / 2) / view.zoom, (box.scrollTop + box.clientHeight / 2) / view.zoom];
  view.zoom = Math.min(4, Math.max(0.02, zoom));
  svg.setAttribute("width", (layout.width + 8) * view.zoom);
  svg.setAttribute("height", (layout.height + 8) * view.zoom);
  box.scrollTo(middle[0] * view.zoom - box.clientWidth / 2, middle[1] * view.zoom - box.clientHeight / 2);
}

/* So that it is as wide as its box, as far as it can still be read. */
function fit(view, least) {
  setZoom(view, Math.max(least, Math.min(1.15, (view.box.clientWidth - 20) / (view.layout.width + 8))));
}
/* So that all of it is in its box. */
function fitWhole(view) {
  setZoom(view, Math.min(1.15, (view.box.clientWidth - 4) / (view.layout.width + 8), (view.box.clientHeight - 4) / (view.layout.height + 8)));
}

function addControls(view) {
  const { box } = view;
  const tool = (text, label, run) => {
    const button = element("button", { "aria-label": `${label}: graph ${view.side}` }, text);
    button.addEventListener("click", run);
    at(`${view.side}-tools`).append(" ", button);
  };
  tool("\u2212", "Smaller", () => setZoom(view, view.zoom / 1.3));
  tool("+", "Larger", () => setZoom(view, view.zoom * 1.3));
  tool("Fit", "All of it", () => fitWhole(view));
  box.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") setZoom(view, view.zoom * 1.3);
    else if (event.key === "-") setZoom(view, view.zoom / 1.3);
    else if (event.key === "0") fitWhole(view);
    else return;
    event.preventDefault();
  });
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    setZoom(view, view.zoom * (event.deltaY < 0 ? 1.1 : 1 / 1.1));
  }, { passive: false });
  let drag = null;
  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button === 0) drag = { x: event.clientX, y: event.clientY, moved: false };
  });
  addEventListener("pointermove", (event) => {
    if (!drag) return;
    drag.moved ||= Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4;
    if (!drag.moved) return;
    box.scrollBy(drag.x - event.clientX, drag.y - event.clientY);
    Object.assign(drag, { x: event.clientX, y: event.clientY });
    event.preventDefault();
  });
  addEventListener("pointerup", () => setTimeout(() => (drag = null)));
  view.svg.addEventListener("click", (event) => {
    const group = event.target.closest("[data-node]");
    if (!group || drag?.moved) return;
    const node = view.nodes[group.dataset.node];
    at("node").textContent = tellNode(view.side, node);
    if (node.step > 0) goTo(node.step);
  });
}

/* Brings the first of these nodes to the middle. */
function reveal(view, wanted) {
  const first = view.nodes.findIndex(wanted);
  if (first < 0) return;
  const place = view.layout.nodes[first], { box, zoom } = view;
  box.scrollTo((place.x + 4) * zoom - box.clientWidth / 2, (place.y + 4) * zoom - box.clientHeight / 2);
}

let views = [];
function showGraphs() {
  const count = (side) => data[side].filter((node) => node.kind === "node").length;
  const changed = (side) => data[side].filter((node) => node.step !== 0).length;
  at("before-title").textContent = `Before: ${count("before")} operators, ${changed("before")} of them removed`;
  at("after-title").textContent = `After: ${count("after")} operators, ${changed("after")} of them made`;
  at("changed-lead").textContent = "Operators as Graft sees them: what runs at each inference, without what is computed from weights alone.";
  if (data.layout !== null) {
    views = readLayout(data.layout).map((layout, i) => makeView(i === 0 ? "before" : "after", layout));
    views.forEach(addControls);
    views.forEach((view) => reveal(view, (node) => node.step !== 0));
  } else {
    at("drawn").hidden = true;
    at("undrawn").hidden = false;
    at("undrawn").textContent = `The graphs are not drawn: ${data.layout_lacks}. They are in the tables below.`;
    at("lists").open = true;
  }
  const fillTables = () => {
    if (!at("lists").open || at("tables").childElementCount > 0) return;
    for (const side of ["before", "after"]) {
      const lines = data[side].map((node, i) => [String(i + 1), node.op, node.name, node.shape, node.in.map((from) => from + 1).join(", "), node.step === 0 ? "" : node.step < 0 ? "simplified" : `${side === "before" ? "removed" : "made"} by ${node.step}`]);
      const made = table([{ name: "#", right: true }, { name: "operator" }, { name: "name" }, { name: "shape" }, { name: "reads" }, { name: "rewrite" }], lines);
      at("tables").append(element("div", { class: "pane" }, element("h3", {}, side === "before" ? "Before" : "After"), element("div", { class: "table tall", tabindex: 0, role: "region", "aria-label": `Operators ${side}` }, made)));
    }
  };
  at("lists").addEventListener("toggle", fillTables);
  fillTables();
}

/* ------------------------------------------------------------------ rewrites */

let current = 0; /* 0: all of them. */
const gainOf = (i) => steps[i - 1].ns - (i > 1 ? steps[i - 2].ns : data.first_ns);
let stepRows = [];

function showRule(rule) {
  const body = element("div", {}, element("h3", {}, rule.name), chipsOf(rule), element("code", { class: "line" }, rule.line));
  const picture = element("div", { class: "picture" }, drawRule(rule));
  const card = element("article", { class: "rule" }, element("div", { class: "columns" }, body, picture));
  if (rule.words) {
    card.append(element("details", { open: "" }, element("summary", {}, "In words, precondition, proof, where it pays"),
      explanationOf(rule, data.solver)));
  }
  at("rule").replaceChildren(card);
}

function goTo(step) {
  current = Math.min(steps.length, Math.max(0, step));
  at("all").disabled = current === 0;
  at("back").disabled = current === 0;
  at("next").disabled = current === steps.length;
  for (const view of views) {
    const belongsHere = (node) => current > 0 && belongs[view.side](node, current);
    view.svg.classList.toggle("stepping", current > 0);
    view.nodes.forEach((node, i) => view.groups[i].classList.toggle("now", belongsHere(node)));
    if (current > 0) reveal(view, belongsHere);
  }
  stepRows.forEach((row, i) => row.classList.toggle("now", i + 1 === current));
  if (current === 0) {
    at("step").textContent = steps.length === 0 ? "no rewrites" : `all ${steps.length} rewrites`;
    at("rule").replaceChildren();
    return;
  }
  const { rule, place, ns } = steps[current - 1];
  const gain = gainOf(current);
  at("step").textContent = `Rewrite ${current} of ${steps.length}${place ? `, at ${place}` : ""}: ${gain === 0 ? "no change, still" : `${change(gain)}, then`} ${time(ns)} in all`;
  showRule(data.rules[rule]);
}

/* Each rule once, in the order of its first rewrite, which a click shows. */
function showRulesUsed(link) {
  const used = data.rules.map((rule) => ({ rule, first: 0, count: 0, ns: 0 }));
  steps.forEach((step, i) => {
    const entry = used[step.rule];
    entry.first ||= i + 1;
    entry.count += 1;
    entry.ns += gainOf(i + 1);
  });
  const lines = used.map((entry) => [link(entry.rule.name, entry.first), String(entry.count), change(entry.ns)]);
  at("all-steps").append(element("h3", { class: "above" }, "By rule"), element("div", { class: "table tall", tabindex: 0, role: "region", "aria-label": "Rules used" },
    table([{ name: "rule" }, { name: "rewrites", right: true }, { name: "change", right: true }], lines)));
}

function showSteps() {
  if (steps.length > 0) {
    const link = (text, step) => {
      const button = element("button", {}, text);
      button.addEventListener("click", () => goTo(step));
      return button;
    };
    const named = (step, i) => element("div", {}, link(data.rules[step.rule].name, i + 1), element("div", { class: "soft only-narrow" }, step.place));
    const lines = steps.map((step, i) => [String(i + 1), named(step, i), step.place, change(gainOf(i + 1)), time(step.ns)]);
    const made = table([{ name: "#", right: true }, { name: "rule" }, { name: "at" }, { name: "change", right: true }, { name: "time then", right: true }], lines);
    stepRows = [...made.tBodies[0].rows];
    for (const row of made.rows) [2, 4].forEach((i) => row.cells[i].classList.add("hide-narrow"));
    showRulesUsed(link);
    at("all-steps").append(element("h3", { class: "above" }, "All rewrites"), element("div", { class: "table tall", tabindex: 0, role: "region", "aria-label": "All rewrites" }, made));
  }
  at("all").addEventListener("click", () => goTo(0));
  at("back").addEventListener("click", () => goTo(current - 1));
  at("next").addEventListener("click", () => goTo(current + 1));
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") goTo(current + 1);
    if (event.key === "k") goTo(current - 1);
  });
  goTo(0);
}

/* --------------------------------------------------------------------- times */

function showTimes() {
  const operators = new Map();
  for (const kernel of kernels) {
    const sum = operators.get(kernel.op) ?? { op: kernel.op, before: 0, after: 0, runs: [0, 0] };
    sum.before += kernel.before * kernel.ns;
    sum.after += kernel.after * kernel.ns;
    sum.runs[0] += kernel.before;
    sum.runs[1] += kernel.after;
    operators.set(kernel.op, sum);
  }
  const sorted = [...operators.values()].sort((a, b) => Math.max(b.before, b.after) - Math.max(a.before, a.after));
  const most = Math.max(1, ...sorted.map((sum) => Math.max(sum.before, sum.after)));
  const bars = (sum) => element("div", {},
    element("div", { class: "share", style: `width:${(100 * sum.before) / most}%` }),
    element("div", { class: "share after", style: `width:${(100 * sum.after) / most}%` }));
  const shares = (sum) => [sum.op, bars(sum), `${digits((100 * sum.before) / data.given.ns, 1)} %`, `${digits((100 * sum.after) / data.made.ns, 1)} %`, time(sum.before), time(sum.after), `${sum.runs[0]} \u2192 ${sum.runs[1]}`];
  const made = table([{ name: "operator" }, { name: "before (grey), after" }, { name: "share", right: true }, { name: "after", right: true }, { name: "time", right: true }, { name: "after", right: true }, { name: "runs", right: true }], sorted.map(shares));
  for (const row of made.rows) {
    row.cells[1].classList.add("shares");
    [4, 5, 6].forEach((i) => row.cells[i].classList.add("hide-narrow"));
  }
  at("shares").append(made);
  at("time-lead").textContent = (data.fused
    ? "As a runtime runs the file: what it fuses by itself is one operator here."
    : "As it is, for a product that fuses nothing by itself.") + " A reorder is a conversion between layouts; what is a view takes no time.";
  const lines = kernels.slice().sort((a, b) => b.ns * Math.max(b.before, b.after) - a.ns * Math.max(a.before, a.after)).map((kernel) => [
    element("code", {}, kernel.what ?? kernel.op), `${kernel.before} \u2192 ${kernel.after}`, `${kernel.measured ? "" : "~"}${time(kernel.ns)}`, time(kernel.spread)]);
  at("kernels").append(table([{ name: "kernel (~: estimated)" }, { name: "runs", right: true }, { name: "each", right: true }, { name: "spread", right: true }], lines));
}

/* ------------------------------------------------------------------ roofline */

function drawRoof() {
  const computing = kernels.filter((kernel) => kernel.flops > 0 && kernel.bytes > 0 && kernel.ns > 0);
  const left = computing.filter((kernel) => !kernel.measured).length;
  const points = computing.filter((kernel) => kernel.measured)
    .map((kernel) => ({ ...kernel, x: kernel.flops / kernel.bytes, y: kernel.flops / kernel.ns, share: (Math.max(kernel.before, kernel.after) * kernel.ns) / data.given.ns }));
  if (points.length === 0) {
    at("roof-lead").textContent = "No kernel that computes was measured: all times are estimates.";
    at("roof").hidden = true;
    return;
  }
  const peak = data.peak_flops_per_ns, band = data.peak_bytes_per_ns;
  at("roof-lead").textContent = `Each kernel that computes: operations a byte against speed, larger where it takes more of the time; filled where it runs after, as a ring where it ran only before. ` +
    (peak > 0 && band > 0 ? `The roof is the best that was measured on this device: ${digits(peak, 0)} GFLOP/s and ${digits(band, 0)} GB/s. Above it lies what comes from nearer caches, and what saves operations (Winograd's algorithm).` : "The device's roof is not known.") +
    (left > 0 ? ` Left out: ${left} kernel${left > 1 ? "s" : ""} whose times are estimates.` : "");
  const width = Math.max(260, at("roof").clientWidth - 2), height = Math.min(420, Math.max(260, width * 0.5));
  const edge = { left: 52, right: 14, top: 26, bottom: 40 };
  const xs = points.map((p) => p.x), ys = points.map((p) => p.y).concat(peak > 0 ? [peak] : []);
  const log = Math.log10;
  const range = (list) => [Math.floor(log(Math.min(...list)) - 0.05), Math.ceil(log(Math.max(...list)) + 0.05)];
  const [x0, x1] = range(xs), [y0, y1] = range(ys);
  const px = (v) => edge.left + ((log(v) - x0) / (x1 - x0)) * (width - edge.left - edge.right);
  const py = (v) => height - edge.bottom - ((log(v) - y0) / (y1 - y0)) * (height - edge.top - edge.bottom);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": "Roofline" });
  const tick = (power) => (power >= -2 && power <= 5 ? digits(10 ** power, Math.max(0, -power)) : `1e${power}`);
  for (let p = x0; p <= x1; p++) {
    svg.append(shape("line", { class: "grid", x1: px(10 ** p), x2: px(10 ** p), y1: edge.top, y2: height - edge.bottom }),
      shape("text", { x: px(10 ** p), y: height - edge.bottom + 15, "text-anchor": p === x1 ? "end" : "middle" }, tick(p)));
  }
  for (let p = y0; p <= y1; p++) {
    svg.append(shape("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: py(10 ** p), y2: py(10 ** p) }),
      shape("text", { x: edge.left - 6, y: py(10 ** p) + 4, "text-anchor": "end" }, tick(p)));
  }
  svg.append(shape("text", { x: width - edge.right, y: height - 8, "text-anchor": "end" }, "FLOP per byte"),
    shape("text", { x: 6, y: 14 }, "GFLOP/s"));
  if (peak > 0 && band > 0) {
    const knee = Math.min(10 ** x1, Math.max(10 ** x0, peak / band)), low = Math.max(10 ** x0, 10 ** y0 / band);
    svg.append(shape("path", { class: "roof", d: `M${px(low)} ${py(low * band)}L${px(knee)} ${py(Math.min(peak, knee * band))}L${px(10 ** x1)} ${py(peak)}` }));
  }
  for (const p of points.sort((a, b) => b.share - a.share)) {
    svg.append(shape("circle", { class: p.after > 0 ? "after" : "before", cx: px(p.x), cy: py(p.y), r: 3 + 22 * Math.sqrt(Math.min(1, p.share)) },
      shape("title", {}, `${p.what ?? p.op}\n${p.before} \u2192 ${p.after} runs of ${time(p.ns)}, ${digits(p.y, 1)} GFLOP/s, ${digits(p.x, 2)} FLOP per byte`)));
  }
  at("roof").replaceChildren(svg);
}

/* ------------------------------------------------------------------- methods */

const barOf = (part) => element("div", {}, element("div", { class: "share after", style: `width:${100 * Math.min(1, Math.max(0, part))}%` }));
/* A table whose second column is bars. */
function barTable(heads, lines) {
  const made = table(heads, lines);
  for (const row of made.rows) row.cells[1].classList.add("shares");
  return made;
}

function showMethods() {
  if (data.methods.length === 0) return;
  const first = data.methods[0].ns;
  at("methods-section").hidden = false;
  const made = barTable(
    [{ name: "method" }, { name: "part of the time" }, { name: "", right: true }, { name: "time", right: true }, { name: "rewrites", right: true }, { name: "graphs priced", right: true }],
    data.methods.map((row) => [`${row.method}, ${row.how}`, barOf(row.ns / first), `${digits((100 * row.ns) / first, 2)} %`, time(row.ns), String(row.steps), digits(row.graphs, 0)]));
  for (const row of made.rows) [3, 4, 5].forEach((i) => row.cells[i].classList.add("hide-narrow"));
  at("methods").append(made);
}

/* A plot with linear axes: `draw` gets the svg and where x and y lie. */
function plotLinear(name, caption, xs, ys, labels, draw) {
  const box = element("div", { class: "plot", role: "img", "aria-label": name });
  at("dream-plots").append(element("figure", { class: "pane" }, element("h3", {}, name), box, element("figcaption", { class: "soft" }, caption)));
  const show = () => {
    const width = Math.max(220, box.clientWidth - 2), height = Math.min(300, Math.max(200, width * 0.6));
    const edge = { left: 48, right: 14, top: 26, bottom: 40 };
    const range = (list) => {
      const least = Math.min(...list), most = Math.max(...list), room = most > least ? 0.04 * (most - least) : 0.5;
      return [least - room, most + room];
    };
    const [x0, x1] = range(xs), [y0, y1] = range(ys);
    const px = (v) => edge.left + ((v - x0) / (x1 - x0)) * (width - edge.left - edge.right);
    const py = (v) => height - edge.bottom - ((v - y0) / (y1 - y0)) * (height - edge.top - edge.bottom);
    const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, width, height });
    const ticks = (from, to) => {
      const raw = (to - from) / 6, power = 10 ** Math.floor(Math.log10(raw));
      const step = power * [1, 2, 5, 10].find((by) => by * power >= raw);
      const first = Math.ceil(from / step), places = Math.max(0, -Math.floor(Math.log10(step)));
      return Array.from({ length: Math.floor(to / step) - first + 1 }, (_, i) => [(first + i) * step, digits((first + i) * step, places)]);
    };
    for (const [value, text] of ticks(x0, x1)) {
      svg.append(shape("line", { class: "grid", x1: px(value), x2: px(value), y1: edge.top, y2: height - edge.bottom }),
        shape("text", { x: px(value), y: height - edge.bottom + 15, "text-anchor": "middle" }, text));
    }
    for (const [value, text] of ticks(y0, y1)) {
      svg.append(shape("line", { class: "grid", x1: edge.left, x2: width - edge.right, y1: py(value), y2: py(value) }),
        shape("text", { x: edge.left - 6, y: py(value) + 4, "text-anchor": "end" }, text));
    }
    svg.append(shape("text", { x: width - edge.right, y: height - 8, "text-anchor": "end" }, labels[0]), shape("text", { x: 6, y: 14 }, labels[1]));
    draw(svg, px, py);
    box.replaceChildren(svg);
  };
  show();
  new ResizeObserver(show).observe(box);
}

function plotDreams({ curve, rewards }) {
  if (curve.length > 1) {
    plotLinear("Training in dreams", "Percent saved in the dreams of each update (grey) and by the last trial in the environment (blue).",
      curve.map((_, i) => i), curve.flat(), ["updates", "% saved"], (svg, px, py) => {
        for (const k of [0, 1]) svg.append(shape("path", { class: k === 1 ? "line after" : "line", d: curve.map((point, i) => `${i === 0 ? "M" : "L"}${px(i)} ${py(point[k])}`).join("") }));
      });
  }
  if (rewards.length > 1) {
    const all = rewards.flat(), ends = [Math.min(...all), Math.max(...all)];
    plotLinear("Rewards, foreseen and real", `Of ${rewards.length} steps of held-out episodes; on the line the world model is right.`,
      all, all, ["real, % of the cost", "foreseen"], (svg, px, py) => {
        svg.append(shape("path", { class: "roof", d: `M${px(ends[0])} ${py(ends[0])}L${px(ends[1])} ${py(ends[1])}` }));
        for (const [said, real] of rewards) svg.append(shape("circle", { class: "after", cx: px(real), cy: py(said), r: 2.5 }));
      });
  }
}

function showDreams() {
  const dreams = data.dreams;
  if (!dreams) return;
  at("dreams-section").hidden = false;
  at("dreams-lead").textContent = `What the world model foresees, on episodes that it was not trained on; the agent took ${digits(dreams.interactions, 0)} steps in the real environment and ${digits(dreams.dream_steps, 0)} in dreams.`;
  const most = Math.max(dreams.dreamed, dreams.real, 1e-9);
  const ahead = [1, 2, 4, 8].map((steps) => [`which rewrites open and close, ${steps} ahead (F1)`, dreams[`changed_f1_${steps}`]]);
  const lines = [["rewards explained", dreams.reward_explained], ["\u2026 by the computed gain alone", dreams.by_computed_gain], ["\u2026 by the mean of each rule", dreams.by_mean_of_rule], ...ahead]
    .map(([name, part]) => [name, barOf(part), digits(part, 3)]);
  for (const [name, saved] of [["saved in dreams", dreams.dreamed], ["saved really", dreams.real]]) lines.push([name, barOf(saved / most), `${digits(saved, 2)} %`]);
  at("dreams").append(barTable([{ name: "what" }, { name: "" }, { name: "", right: true }], lines));
  plotDreams(dreams);
}

/* -------------------------------------------------------------------- origin */

function showOrigin() {
  const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  at("command").textContent = data.command.map(({ word }) => quote(word)).join(" ");
  const lines = [["Graft", `${data.version}`, ""], ["solver of the proofs", data.solver, ""], ["kernels", data.library, ""]]
    .concat(data.files.map((file) => [file.what, file.name, file.hash ?? "not a file"]));
  at("files").append(table([{ name: "what" }, { name: "which" }, { name: "XXH128" }], lines.map(([what, name, hash]) => [what, element("code", {}, name), element("code", {}, hash)])));
  at("footer").textContent = `Written by graft ${data.version}. One file: nothing is loaded from elsewhere.`;
}

showHeadline();
showGraphs();
showSteps();
showTimes();
drawRoof();
new ResizeObserver(drawRoof).observe(at("roof"));
showMethods();
showDreams();
showOrigin();
