/* The rule set: a list that is filtered; a rule is drawn when it comes into view. */
const rules = data.rules;
for (const rule of rules) {
  rule.operators = [...rule.source.nodes, ...rule.target.nodes].map((node) => node.op.split("#")[0]);
  rule.hay = [rule.name, rule.line, rule.family, rule.numeric, rule.id].join("\n").toLowerCase();
}

const drawer = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    if (!entry.isIntersecting) continue;
    drawer.unobserve(entry.target);
    entry.target.append(drawRule(rules[entry.target.dataset.rule]));
  }
}, { rootMargin: "400px" });

function makeRow(rule, i) {
  const picture = element("div", { class: "picture", "data-rule": i });
  const words = element("details", {}, element("summary", {}, "In words, precondition, proof, where it pays"));
  words.addEventListener("toggle", () => {
    if (words.open && words.childElementCount === 1) {
      words.append(explanationOf(rule, data.solver));
    }
  });
  const text = element("div", {},
    element("h3", {}, element("a", { href: `#${rule.id}` }, rule.name)), chipsOf(rule),
    element("code", { class: "line" }, rule.line));
  drawer.observe(picture);
  return element("article", { class: "rule listed", id: rule.id }, element("div", { class: "columns" }, text, picture), words);
}

function fill(select, label, values) {
  select.append(element("option", { value: "" }, label));
  for (const value of values) select.append(element("option", { value }, value));
}
const kinds = (list) => [...new Set(list)].sort();

fill(at("operator"), "every operator", kinds(rules.flatMap((rule) => rule.operators)));
fill(at("family"), "every family", kinds(rules.map((rule) => rule.family)));
fill(at("numeric"), "every class", kinds(rules.map((rule) => rule.numeric)));
fill(at("gain"), "any saving", ["saves operators"]);

const list = at("rules");
const rows = rules.map(makeRow);
list.append(...rows);

function filter() {
  const words = at("text").value.toLowerCase().split(/\s+/).filter(Boolean);
  const operator = at("operator").value, family = at("family").value;
  const numeric = at("numeric").value, saves = at("gain").value !== "";
  let count = 0;
  rules.forEach((rule, i) => {
    const fits = words.every((word) => rule.hay.includes(word)) &&
      (!operator || rule.operators.includes(operator)) && (!family || rule.family === family) &&
      (!numeric || rule.numeric === numeric) && (!saves || rule.gain > 0);
    rows[i].hidden = !fits;
    count += fits;
  });
  at("count").textContent = count === 1 ? "1 rule" : `${count} rules`;
}
for (const id of ["text", "operator", "family", "numeric", "gain"]) at(id).addEventListener("input", filter);

function openLinked() {
  const row = location.hash && at(location.hash.slice(1));
  if (!row || !row.classList.contains("rule")) return;
  row.hidden = false;
  row.querySelector("details").open = true;
  row.scrollIntoView();
}
addEventListener("hashchange", openLinked);
addEventListener("keydown", (event) => {
  if (event.key === "/" && !/INPUT|SELECT/.test(document.activeElement.tagName)) {
    event.preventDefault();
    at("text").focus();
  }
});

const exact = rules.filter((rule) => rule.numeric === "exact").length;
const proved = rules.filter((rule) => rule.proof === "proved").length;
at("lead").textContent = `${rules.length} rules that rewrite graphs of tensor operators, ${proved === rules.length ? "all" : proved} of them proved for all sizes with ${data.solver.replaceAll(" ", "\u00a0")}; ${exact} give the same bits for every input. Each replaces what is left of the arrow by what is right of it.`;
at("footer").textContent = `${data.file}, shown by Graft ${data.version}.`;
filter();
openLinked();
