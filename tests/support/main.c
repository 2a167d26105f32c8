/* main.c - the program of tests that have no main of their own. */
#include "tests/support/check.h"

int main(void) { return check_run_cases(); }
