"""`graft` and `python -m graft`: the program itself."""

import os
import sys

from graft import program


def main() -> None:
    os.execv(program, ["graft", *sys.argv[1:]])


if __name__ == "__main__":
    main()
