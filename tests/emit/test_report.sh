#!/bin/sh
# The pages of `graft optimize --report` and `graft rules --html`: what they say, that they need no
# other file, and how they look in a browser, where there is one.
. tests/support/tap.sh

DEVICE=intel-xeon-6-167
POLICY=rules/policies/intel-xeon-6-167-avx512.graft
LIMIT=5000000 # Bytes of a page.
optimize() { "$GRAFT" --quiet optimize "$@" --device $DEVICE --database "$FOLDER/no.costs"; }
page_of() { # NAME MODEL OPTIONS...: $FOLDER/NAME.html
    name=$1
    model=$2
    shift 2
    optimize "$model" "$FOLDER/$name.onnx" --json --report "$FOLDER/$name.html" "$@" > "$FOLDER/$name.json"
}
holds() { python3 tests/emit/page_data.py "$FOLDER/$1.html" "$FOLDER/$1.json"; }
get() { python3 tests/emit/page_data.py --get "$FOLDER/$1.html" "$2"; }

makes_pages() {
    page_of squeezenet squeezenet --search greedy && page_of resnet50 resnet50 && page_of nasnet nasnet &&
        page_of policy resnet8 --policy $POLICY && "$GRAFT" rules --html "$FOLDER/rules.html"
}
is_small() { for page in "$FOLDER"/*.html; do [ "$(wc -c < "$page")" -lt $LIMIT ] || return 1; done; }
# Nothing that a browser would fetch; the one URL is a name space.
needs_nothing() {
    for page in "$FOLDER"/*.html; do
        ! grep -Eio '(src|href)="[^#][^"]*"|@import|url\((http|//)[^)]*\)|https?://[^ "]*' "$page" |
            grep -v '^http://www.w3.org/2000/svg$' || return 1
    done
}
holds_all() { holds squeezenet && holds resnet50 && holds nasnet && holds policy; }
tells_squeezenet() {
    [ "$(get squeezenet '[n["op"] for n in data["before"] if n["step"] == 1]')" = "['concat', 'max_pool']" ] &&
        [ "$(get squeezenet 'sorted(n["op"] for n in data["after"] if n["step"] == 1)')" = "['concat', 'max_pool', 'max_pool']" ] &&
        [ "$(get squeezenet '[s["place"] for s in data["steps"]]')" = "['/features/5/MaxPool']" ] &&
        [ "$(get squeezenet 'data["steps"][-1]["ns"] == data["made"]["ns"]')" = True ]
}
# `graft policy` writes the page of its own policy, with what it is compared with.
shows_policy() {
    "$GRAFT" --quiet policy dscnn --device $DEVICE --database "$FOLDER/no.costs" --out "$FOLDER/made" > "$FOLDER/out" &&
        cp "$FOLDER/made/report.html" "$FOLDER/made.html" && python3 tests/emit/page_data.py "$FOLDER/made.html" &&
        [ "$(get made 'data["policy"] and len(data["steps"]) > 3 and data["dreams"] is None')" = True ] &&
        [ "$(get made '[m["method"] for m in data["methods"]][:3]')" = "['before', 'random', 'greedy']" ] &&
        [ "$(get made 'data["methods"][-1]["ns"] < data["methods"][0]["ns"]')" = True ] &&
        [ "$(get squeezenet 'data["methods"]')" = "[]" ] && [ -s "$FOLDER/made/report.onnx" ]
}
# The agent that dreams, with small networks: how its training went and what its model foresaw.
shows_dreams() {
    sed -e 's/^  step_limit: .*/  step_limit: 40/; s/^  hidden: 32 .*/  hidden: 12/; s/^  latent: .*/  latent: 12/' \
        -e 's/^  width: .*/  width: 8/; s/^  hidden: 64 .*/  hidden: 24/; s/^  pair: .*/  pair: 16/' \
        -e 's/^  episodes: 72 .*/  episodes: 6/; s/^  updates: 2400 .*/  updates: 120/' \
        -e 's/^  dream_updates: .*/  dream_updates: 15/' train/settings.yaml > "$FOLDER/settings.yaml"
    "$GRAFT" --quiet policy dscnn --agent dream --settings "$FOLDER/settings.yaml" --device $DEVICE \
        --database "$FOLDER/no.costs" --out "$FOLDER/dreamer" > "$FOLDER/out" && cp "$FOLDER/dreamer/report.html" "$FOLDER/dreamt.html" &&
        python3 tests/emit/page_data.py "$FOLDER/dreamt.html" &&
        [ "$(get dreamt 'len(data["dreams"]["curve"]), data["dreams"]["curve"][0][1] > 0')" = "(16, True)" ] &&
        [ "$(get dreamt 'len(data["dreams"]["rewards"]) > 20 and all(len(r) == 2 for r in data["dreams"]["rewards"])')" = True ]
}
# The same rule as `graft rules --explain` says it.
explains() {
    name=$(get squeezenet 'data["rules"][0]["name"]')
    "$GRAFT" rules --explain "$name" > "$FOLDER/words" && get squeezenet 'data["rules"][0]["words"]' | sed '$d' | cmp - "$FOLDER/words"
}
policy_is_followed() {
    [ "$(get policy 'len(data["steps"]) > 3 and all(r["proof"] == "proved" for r in data["rules"])')" = True ]
}
makes_same_page() {
    cp "$FOLDER/squeezenet.html" "$FOLDER/first.page" && page_of squeezenet squeezenet --search greedy &&
        cmp "$FOLDER/first.page" "$FOLDER/squeezenet.html"
}
hashes_files() {
    command -v xxhsum > /dev/null || return 77
    hash=$(get squeezenet '[f["hash"] for f in data["files"] if f["what"] == "result"][0]')
    [ "$(xxhsum -H2 "$FOLDER/squeezenet.onnx" | cut -d' ' -f1)" = "$hash" ]
}
# Nothing is better than what `graft optimize` has made.
says_unchanged() { page_of again "$FOLDER/squeezenet.onnx" --search greedy && holds again && [ "$(get again 'data["steps"]')" = "[]" ]; }
# An empty PATH has no dot.
does_without_graphviz() {
    python=$(command -v python3)
    (graft=$(realpath "$GRAFT") && mkdir "$FOLDER/empty" && PATH=$FOLDER/empty "$graft" --quiet optimize dscnn \
        "$FOLDER/bare.onnx" --device $DEVICE --database "$FOLDER/no.costs" --report "$FOLDER/bare.html") > "$FOLDER/out" &&
        [ "$("$python" tests/emit/page_data.py --get "$FOLDER/bare.html" 'data["layout"], data["layout_lacks"]')" = \
            "(None, 'Graphviz (the program dot) is not installed')" ]
}
draws() { [ "$(get squeezenet 'data["layout"].count("graph 1 ")')" = 2 ]; }
refuses() {
    error_is 2 "squeezenet.json" "$GRAFT" --quiet optimize dscnn "$FOLDER/z.onnx" --device $DEVICE --report "$FOLDER/squeezenet.json/x.html" &&
        error_is 2 "No space left" "$GRAFT" --quiet optimize dscnn "$FOLDER/z.onnx" --device $DEVICE --report /dev/full &&
        [ ! -e "$FOLDER/z.onnx" ] &&
        error_is 2 "--report would take the place of OUT.onnx" "$GRAFT" --quiet optimize dscnn "$FOLDER/z.onnx" --device $DEVICE --report "$FOLDER/z.onnx" &&
        [ ! -e "$FOLDER/z.onnx" ] &&
        error_is 2 "--simplify asks no costs" "$GRAFT" optimize dscnn "$FOLDER/z.onnx" --simplify --report "$FOLDER/z.html" &&
        error_is 2 "squeezenet.json" "$GRAFT" rules --html "$FOLDER/squeezenet.json/x.html" && [ ! -e "$FOLDER/z.onnx" ] && [ ! -e "$FOLDER/z.html" ]
}
evil_pages() {
    python3 tests/emit/report_model.py 24 "$FOLDER/<img src=x>.onnx" && page_of evil "$FOLDER/<img src=x>.onnx" && holds evil &&
        python3 tests/emit/report_model.py 1000 "$FOLDER/large.in" && mv "$FOLDER/large.in" "$FOLDER/thousand.onnx" &&
        page_of large "$FOLDER/thousand.onnx" && holds large
}
# In the file the names are there, too, but no '<' of theirs.
escapes() {
    [ "$(get evil 'sum(1 for n in data["before"] if "<script>" in n["name"])')" = 24 ] &&
        [ "$(get evil 'sum(1 for s in data["steps"] if "<script>" in s["place"]) > 0')" = True ] &&
        ! grep -q 'alert(1)</\|<img\|<i>\|<b>Own' "$FOLDER/evil.html" && [ "$(grep -c '</script>' "$FOLDER/evil.html")" = 2 ]
}

if ! command -v python3 > /dev/null; then
    skip "the pages" "no python3 here"
    finish
    exit
fi
check "pages are made" makes_pages
check "none has 5 MB" is_small
check "nor needs another file" needs_nothing
check "their data agree" holds_all
check "what became of SqueezeNet" tells_squeezenet
check "rules in their words" explains
check "a policy's rewrites" policy_is_followed
check "the policy that graft policy makes" shows_policy
check "dreams beside the real" shows_dreams
check "the same page again" makes_same_page
if command -v xxhsum > /dev/null; then
    check "hashes are those of xxhsum" hashes_files
else
    skip "hashes are those of xxhsum" "no xxhsum (package xxhash) here"
fi
check "a model that nothing improves" says_unchanged
check "without Graphviz" does_without_graphviz
if command -v dot > /dev/null; then
    check "with Graphviz" draws
else
    skip "with Graphviz" "no dot (package graphviz) here"
fi
check "what it refuses" refuses
check "models with names like HTML, and large ones" evil_pages
check "names are escaped" escapes

CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
if [ -z "$CHROMIUM" ]; then
    skip "in a browser" "no Chromium here; make deps DEV=1 installs it"
elif ! command -v dot > /dev/null; then
    skip "in a browser" "no dot (package graphviz) here"
else
    look() { python3 tests/emit/page_look.py "$CHROMIUM" "$@"; }
    check "in Chromium, at three widths" look widths "$FOLDER/resnet50.html" "$FOLDER/squeezenet.html" \
        "$FOLDER/policy.html" "$FOLDER/made.html" "$FOLDER/dreamt.html" "$FOLDER/bare.html" "$FOLDER/evil.html" "$FOLDER/again.html" "$FOLDER/rules.html"
    check "rewrites by keys and buttons" look steps "$FOLDER/resnet50.html"
    check "plots of dreams" look dreams "$FOLDER/dreamt.html"
    check "names as texts" look names "$FOLDER/evil.html"
    check "1,000 nodes" look large "$FOLDER/large.html"
    check "a search in the rules" look rules "$FOLDER/rules.html"
fi
finish
