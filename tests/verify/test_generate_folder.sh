#!/bin/sh
# Rules from a folder of families of one's own into another folder.
. tests/support/tap.sh

mkdir "$FOLDER/families" "$FOLDER/rules" "$FOLDER/own" "$FOLDER/own/families"
cat > "$FOLDER/families/small.yaml" << 'END'
family: small
order: 1
sets:
  - set: signs
    depth: 2
    inputs:
      x: [2, 3]
      y: [2, 3]
    operators:
      - {op: relu}
      - {op: sigmoid}
      - {op: add, distinct: true}
END
cp "$FOLDER/families/small.yaml" "$FOLDER/own/families"

writes_rules() {
    gives 0 "$GRAFT" rules --generate "$FOLDER/rules" --families "$FOLDER/families" || return 1
    [ -e "$FOLDER/rules/derivations.txt" ] &&
        "$GRAFT" rules "$FOLDER/rules/graft.rules" | grep -qF 'relu(relu(a))'
}
tells_time() { grep -q 'processor time: propose .* lift .* sweep .* select .* prove' "$FOLDER/err"; }
reads_own_families() {
    gives 0 "$GRAFT" rules --generate "$FOLDER/own" &&
        cmp "$FOLDER/own/graft.rules" "$FOLDER/rules/graft.rules"
}
no_families() {
    error_is 2 "$FOLDER/none" "$GRAFT" --quiet rules --generate "$FOLDER" --families "$FOLDER/none" &&
        [ ! -e "$FOLDER/graft.rules" ]
}
not_generating() { error_is 2 '--generate' "$GRAFT" rules --families "$FOLDER/families"; }

check "proves a folder's families into another folder" writes_rules
check "tells the processor time of each stage" tells_time
check "without --families takes those of the folder" reads_own_families
check "families that are not there" no_families
check "--families without --generate" not_generating
finish
