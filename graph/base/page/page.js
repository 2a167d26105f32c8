/* What both pages use. Data are written as text only: nothing here sets HTML. */
const data = JSON.parse(document.getElementById("data").textContent);
const at = (id) => document.getElementById(id);

/* An element with attributes and children; texts become text nodes. */
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
}

function shape(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
}

const shorten = (text, most) => (text.length > most ? text.slice(0, most - 1) + "\u2026" : text);

/* ------------------------------------------------------------ pictures of rules */

const ROW = 13, PAD = 7, GAP = 14, LEVEL = 26, LETTER = 6.4;

/* The label of an operator: what it takes from operator #k under the same name is said at once. */
function linesOf(op, attributes) {
  const same = attributes.map((line) => /^(\w+) = (#\d+)\.\1$/.exec(line)?.[2]);
  const most = same.find((number) => number && same.filter((other) => other === number).length > 1);
  const rest = attributes.filter((_, i) => !most || same[i] !== most).map((line) => shorten(line, 24));
  if (most && rest.length === 0) return [op + most];
  const lines = most ? [...rest, `the rest of ${most}`] : rest;
  return [op, ...lines.slice(0, 4), ...(lines.length > 4 ? ["\u2026"] : [])];
}

/* The boxes of one side: variables, operators, outputs, each with the boxes it reads. */
function boxesOf(side) {
  const boxes = [], letters = {};
  const read = (operand) => {
    if (operand >= "a") {
      letters[operand] ??= boxes.push({ lines: [operand], from: [], round: true }) - 1;
      return letters[operand];
    }
    return side.nodes[parseInt(operand, 10)].box;
  };
  for (const node of side.nodes) {
    const all = node.with.split("\n").slice(1);
    const lines = linesOf(node.op, all);
    const from = node.in.map(read);
    node.box = boxes.push({ lines, from, full: all.join("\n") }) - 1;
  }
  side.out.forEach((operand, i) =>
    boxes.push({ lines: [side.out.length > 1 ? `out ${i + 1}` : "out"], from: [read(operand)], round: true }));
  return boxes;
}

/* Layers: operators below what they read, variables just above their first reader; an edge that
 * passes a layer has a narrow box there, so that it goes between the others. */
function layersOf(boxes) {
  const depth = boxes.map(() => 0);
  for (let pass = 0; pass < boxes.length; pass++) {
    boxes.forEach((box, i) => box.from.forEach((f) => (depth[i] = Math.max(depth[i], depth[f] + 1))));
  }
  boxes.forEach((box, i) => {
    if (box.from.length > 0) return;
    const readers = depth.filter((_, r) => boxes[r].from.includes(i));
    if (readers.length > 0) depth[i] = Math.min(...readers) - 1;
  });
  const layers = [];
  boxes.forEach((box, i) => (layers[depth[i]] ??= []).push(box));
  boxes.slice().forEach((box, i) => {
    box.via = box.from.map((f) => {
      const way = [boxes[f]];
      for (let level = depth[f] + 1; level < depth[i]; level++) {
        const passing = { lines: [], passes: true, from: [], above: [way[way.length - 1]] };
        layers[level].push(passing);
        way.push(passing);
      }
      return [...way, box];
    });
    box.above = box.via.map((way) => way[way.length - 2]);
  });
  return layers;
}

/* Where the k-th operand of a box arrives. */
const spotOf = (box, k) => box.x + (k - (box.above.length - 1) / 2) * Math.min(12, box.w / 4);

function placeLayers(layers) {
  for (const layer of layers) {
    for (const box of layer) {
      box.w = box.passes ? 6 : Math.max(22, ...box.lines.map((line) => line.length * LETTER)) + 2 * PAD;
      box.h = box.passes ? 0 : box.lines.length * ROW + PAD;
    }
  }
  const spread = (layer) => {
    let x = 0;
    for (const box of layer) {
      box.x = x + box.w / 2;
      x += box.w + GAP;
    }
    for (const box of layer) box.x -= (x - GAP) / 2;
  };
  const mean = (list) => list.reduce((sum, x) => sum + x, 0) / list.length;
  layers.forEach(spread);
  for (let pass = 0; pass < 3; pass++) {
    layers.forEach((layer) => {
      layer.forEach((box) => (box.wish = box.above.length > 0 ? mean(box.above.map((from) => from.x)) : box.x));
      layer.sort((a, b) => a.wish - b.wish);
      spread(layer);
    });
    layers.slice().reverse().forEach((layer, back) => {
      const below = layers[layers.length - back] ?? [];
      layer.forEach((box) => {
        const spots = below.flatMap((reader) => reader.above.flatMap((from, k) => (from === box ? [spotOf(reader, k)] : [])));
        box.wish = spots.length > 0 ? mean(spots) : box.x;
      });
      layer.sort((a, b) => a.wish - b.wish);
      spread(layer);
    });
  }
  let y = 0;
  for (const layer of layers) {
    const tall = Math.max(...layer.map((box) => box.h));
    layer.forEach((box) => (box.y = y + tall / 2));
    y += tall + LEVEL;
  }
  const all = layers.flat();
  const left = Math.min(...all.map((box) => box.x - box.w / 2));
  all.forEach((box) => (box.x -= left));
  return { width: Math.max(...all.map((box) => box.x + box.w / 2)), height: y - LEVEL };
}

function drawSide(side, dx, group) {
  const boxes = boxesOf(side);
  const layers = layersOf(boxes);
  const size = placeLayers(layers);
  for (const box of boxes) {
    box.via.forEach((way, k) => {
      let d = "";
      way.forEach((stop, s) => {
        const last = s === way.length - 1;
        const spot = last ? spotOf(stop, k) : stop.x;
        const top = stop.y - stop.h / 2, bottom = stop.y + stop.h / 2;
        if (s > 0) {
          const from = way[s - 1], start = from.y + from.h / 2, middle = (start + top) / 2;
          d += `C${from.x + dx} ${middle} ${spot + dx} ${middle} ${spot + dx} ${top}`;
        } else {
          d = `M${stop.x + dx} ${bottom}`;
        }
      });
      group.append(shape("path", { d }));
    });
  }
  for (const box of boxes) {
    const made = shape("g", { class: box.round ? "end" : "node" });
    made.append(shape("rect", { x: box.x + dx - box.w / 2, y: box.y - box.h / 2, width: box.w, height: box.h, rx: box.round ? box.h / 2 : 3 }));
    box.lines.forEach((line, i) => {
      const text = shape("text", { x: box.x + dx, y: box.y - box.h / 2 + PAD / 2 + ROW * (i + 0.78) }, line);
      if (i > 0 || box.round) text.setAttribute("class", "small");
      made.append(text);
    });
    if (box.full) made.append(shape("title", {}, box.full));
    group.append(made);
  }
  return size;
}

/* Source and target of a rule, side by side. */
function drawRule(rule) {
  const left = shape("g", {}), right = shape("g", {});
  const a = drawSide(rule.source, 0, left), between = 54;
  const b = drawSide(rule.target, a.width + between, right);
  const width = a.width + between + b.width, height = Math.max(a.height, b.height);
  left.setAttribute("transform", `translate(0 ${(height - a.height) / 2})`);
  right.setAttribute("transform", `translate(0 ${(height - b.height) / 2})`);
  const arrow = shape("path", { d: `M${a.width + 14} ${height / 2}h24m-6 -5l6 5l-6 5` });
  /* On a phone it is moved sideways rather than too small to read. */
  return shape("svg", { class: "graph", style: `min-width:${0.75 * (width + 4)}px`, role: "img", "aria-label": `${rule.name} as a picture`, viewBox: `-2 -2 ${width + 4} ${height + 4}`, width: width + 4, height: height + 4 }, left, right, arrow);
}

/* -------------------------------------------------------------- words of rules */

function chipsOf(rule) {
  const chips = element("div", { class: "chips" });
  const add = (text, good) => chips.append(element("span", { class: good ? "chip good" : "chip" }, text));
  if (rule.proof) {
    add(rule.proof === "proved" ? "proved for all sizes" : "holds within bounds", rule.proof === "proved");
    add(rule.numeric === "exact" ? "the same bits" : rule.numeric);
    add(rule.family);
    if (rule.gain > 0) add(`saves ${rule.gain} operator${rule.gain > 1 ? "s" : ""}`);
  } else {
    add("not in the rule set: its certificate is where the policy was made");
  }
  return chips;
}

/* What Graft says of it, without the head that the card has already: a heading for each paragraph,
 * by how it begins. */
const PARAGRAPHS = [["It replaces", "In words"], ["It holds", "Precondition"], ["Proof:", "Proof"], ["Which way", "Where it pays"]];
function wordsOf(rule) {
  return rule.words.split("\n\n").slice(1).map((text) => {
    const heading = PARAGRAPHS.find(([begin]) => text.startsWith(begin))?.[1];
    return element("div", {}, ...(heading ? [element("h4", {}, heading)] : []), element("pre", {}, text.trimEnd()));
  });
}

/* What the certificate counts. */
function certificateOf(rule, solver) {
  const rows = [
    ["identity", rule.id],
    ["evaluated at", `${rule.swept} instances${rule.complete ? ", all within the bounds" : ""}`],
    ["proved element by element", `${rule.solved} instances, by ${solver}`],
    ["for all sizes", rule.proof === "proved" ? (rule.cases > 0 ? `${rule.cases} case${rule.cases > 1 ? "s" : ""} of ranks and axes, sizes symbolic` : "over scalars") : "no"],
  ];
  const body = element("tbody", {});
  for (const [what, value] of rows) body.append(element("tr", {}, element("td", { class: "soft" }, what), element("td", {}, value)));
  return element("div", { class: "table" }, element("table", {}, body));
}

/* Words, precondition and proof beside the certificate; where it pays is wider. */
function explanationOf(rule, solver) {
  const words = wordsOf(rule), half = Math.ceil(words.length / 2);
  return element("div", { class: "columns told" },
    element("div", {}, ...words.slice(0, half)),
    element("div", {}, ...words.slice(half, -1), certificateOf(rule, solver)),
    element("div", { class: "whole" }, ...words.slice(-1)));
}
