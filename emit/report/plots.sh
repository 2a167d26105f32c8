#!/bin/sh
# plots.sh FROM TO: draws the plots whose data and scripts evaluation.py wrote into the folder
# FROM, and puts them into TO. Without gnuplot it says so, and leaves those that are there.
set -eu

if ! command -v gnuplot > /dev/null; then
    echo "eval: no gnuplot, so docs keep the plots that they have; 'make deps DEV=1' installs it"
    exit 0
fi
mkdir -p "$2"
to=$(cd "$2" && pwd)
cd "$1"
for script in *.gp; do
    gnuplot "$script"
    cp "${script%.gp}.svg" "$to"
done
