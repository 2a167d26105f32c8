"""Looks at pages in a headless Chromium. What is wrong is printed, and the exit status 1.

    page_look.py PROGRAM widths PAGE...   at three widths and in both schemes: no error, no overflow
    page_look.py PROGRAM steps PAGE       buttons and keys go through the rewrites of a report
    page_look.py PROGRAM dreams PAGE      a curve and a cloud of points
    page_look.py PROGRAM names PAGE       names that would be HTML are texts
    page_look.py PROGRAM large PAGE       what a step costs does not grow with the graph
    page_look.py PROGRAM rules PAGE       searching in the set
"""
import sys

from browser import Browser

FAULTS = []


def expect(what, value, expected):
    if value != expected:
        FAULTS.append(f"{what}: {value!r}, not {expected!r}")


WIDE = """[...document.querySelectorAll("body *")].filter((e) => !e.closest(".table, .view, .picture, svg") &&
    e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
    .map((e) => e.tagName + "#" + e.id).slice(0, 5).join(" ")"""


def look_at_widths(browser, pages):
    for page in pages:
        for width, scheme in ((360, "light"), (800, "dark"), (1440, "light")):
            browser.open(page, width, scheme=scheme)
            where = f"{page} at {width}"
            browser.run("document.querySelectorAll('details').forEach((d, i) => (d.open = i < 20))")
            browser.run("new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)))")
            wide = browser.run("document.documentElement.scrollWidth > innerWidth")
            expect(where + ": wider than the window", wide, False)
            expect(where + ": elements beyond its edge", browser.run(WIDE), "")
            expect(where + ": complaints", browser.complaints(), [])


def look_at_steps(browser, pages):
    browser.open(pages[0], 1440)
    count = browser.run("steps.length")
    now = "[...document.querySelectorAll('.now[data-node]')].map((g) => g.textContent).length"
    if count < 2:
        FAULTS.append("the page has fewer than two rewrites to go through")
    expect("at first all are shown", browser.run("current"), 0)
    expect("none of them is marked", browser.run(now), 0)
    browser.press("j")
    expect("j goes to the first", browser.run("current"), 1)
    expect("whose nodes are marked in both graphs", browser.run(
        "views.every((view) => view.box.querySelector('.now'))"), True)
    in_view = """views.every(({ box }) => { const a = box.getBoundingClientRect(),
        b = box.querySelector('.now').getBoundingClientRect();
        return b.top >= a.top && b.bottom <= a.bottom && b.left >= a.left && b.right <= a.right })"""
    expect("and in sight", browser.run(in_view), True)
    expect("with the rule's words", browser.run("at('rule').innerText.includes('It replaces')"), True)
    headings = "[...at('rule').querySelectorAll('h4')].map((h) => h.textContent).join()"
    expect("under headings", browser.run(headings), "In words,Precondition,Proof,Where it pays")
    expect("and picture", browser.run("at('rule').querySelectorAll('svg .node').length > 1"), True)
    browser.run("at('next').click()")
    expect("the button goes on", browser.run("current"), 2)
    browser.press("k")
    expect("k goes back", browser.run("current"), 1)
    browser.run("goTo(steps.length)")
    expect("rewrites of all rules", browser.run("""[...at('all-steps').querySelector('tbody').rows]
        .reduce((sum, row) => sum + Number(row.cells[1].textContent), 0)"""), count)
    expect("at the last there is no next", browser.run("at('next').disabled"), True)
    browser.run("at('before').focus()")
    zoom = browser.run("views[0].zoom")
    browser.press("+")
    expect("+ zooms", browser.run("views[0].zoom") > zoom, True)
    browser.press("0")
    expect("0 fits all of it in", browser.run(
        "views[0].svg.getBoundingClientRect().height <= views[0].box.clientHeight"), True)
    expect("complaints", browser.complaints(), [])


def look_at_dreams(browser, pages):
    browser.open(pages[0], 1440)
    expect("the section is shown", browser.run("at('dreams-section').hidden"), False)
    expect("two lines", browser.run("at('dream-plots').querySelectorAll('.line').length"), 2)
    expect("a point a reward", browser.run("at('dream-plots').querySelectorAll('circle').length"),
           browser.run("data.dreams.rewards.length"))
    outside = """[...at('dream-plots').querySelectorAll('circle')].filter((c) => {
        const [,, w, h] = c.ownerSVGElement.getAttribute('viewBox').split(' ').map(Number);
        return !(+c.getAttribute('cx') > 40 && +c.getAttribute('cx') < w && +c.getAttribute('cy') > 20
            && +c.getAttribute('cy') < h - 38) }).length"""
    expect("points outside of the axes", browser.run(outside), 0)
    expect("places that are no numbers", browser.run("document.body.innerHTML.includes('NaN')"), False)
    expect("complaints", browser.complaints(), [])


def look_at_names(browser, pages):
    browser.open(pages[0], 800)
    browser.run("(at('lists').open = true, goTo(1))")
    browser.run("new Promise((f) => requestAnimationFrame(() => requestAnimationFrame(f)))")
    expect("elements from names",
           browser.run("document.querySelectorAll('img, i, s, u, b').length"), 0)
    expect("scripts", browser.run("document.scripts.length"), 2)
    for text in ("</script><script>alert(1)</script><img src=x onerror=alert(2)> 0", "<i>input</i>",
                 "<u>output</u>", "<b>Own</b>", "<s>size</s> = 1"):
        script = f"document.body.textContent.includes({text!r})"
        expect(f"the name {text} is there", browser.run(script), True)
    expect("complaints", browser.complaints(), [])


def look_at_large(browser, pages):
    browser.open(pages[0], 1440)
    nodes = browser.run("data.before.length + data.after.length")
    if nodes < 2000:
        FAULTS.append(f"only {nodes} nodes")
    elements = browser.run("document.querySelectorAll('.view *').length")
    if elements > 8 * nodes:
        FAULTS.append(f"{elements} elements for {nodes} nodes")
    changes = browser.run("""new Promise((f) => { let count = 0;
        new MutationObserver((all) => { count += all.filter((m) => m.target.closest(".view")).length })
            .observe(document.body, { subtree: true, attributes: true, childList: true });
        goTo(1); goTo(2); setTimeout(() => f(count)) })""")
    if changes > 100:
        FAULTS.append(f"a step changes {changes} elements of the graphs")
    expect("elements afterwards",
           browser.run("document.querySelectorAll('.view *').length"), elements)
    expect("complaints", browser.complaints(), [])


def look_at_rules(browser, pages):
    shown = "document.querySelectorAll('.rule:not([hidden])').length"
    browser.open(pages[0], 1440)
    total = browser.run("rules.length")
    expect("all are shown", browser.run(shown), total)
    drawn = "document.querySelectorAll('.picture svg').length"
    if not 0 < browser.run(drawn) < 100:
        FAULTS.append("it draws %d rules at once" % browser.run(drawn))
    browser.press("/")
    browser.run("document.activeElement.value = 'softmax matmul'")
    browser.run("at('text').dispatchEvent(new Event('input'))")
    expect("the search finds", browser.run(shown), browser.run(
        "rules.filter((r) => ['softmax', 'matmul'].every((w) => r.hay.includes(w))).length"))
    browser.run("(at('text').value = '', at('numeric').value = 'exact', filter())")
    expect("a class", browser.run(shown),
           browser.run("rules.filter((r) => r.numeric === 'exact').length"))
    browser.run("(at('numeric').value = '', at('operator').value = 'relu', filter())")
    expect("an operator", browser.run("""rules.every((r, i) => rows[i].hidden !==
        [...r.source.nodes, ...r.target.nodes].some((n) => n.op.split('#')[0] === 'relu'))"""), True)
    every = "rules.filter((r) => { const p = drawRule(r); return p.outerHTML.includes('NaN') }).length"
    expect("pictures without a place", browser.run(every), 0)
    browser.run("location.hash = rules[rules.length - 1].id")
    browser.run("new Promise((f) => setTimeout(f))")
    expect("a link opens its rule",
           browser.run("rows[rows.length - 1].querySelector('pre') !== null"), True)
    expect("complaints", browser.complaints(), [])


program, look, pages = sys.argv[1], sys.argv[2], sys.argv[3:]
browser = Browser(program)
try:
    globals()["look_at_" + look](browser, pages)
finally:
    browser.close()
for fault in FAULTS:
    print(fault)
sys.exit(1 if FAULTS else 0)
