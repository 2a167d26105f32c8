/* host.c - the platform of a computer with a C library. */
#include "platform.h"

#include <stdio.h>

void platform_write(const char *text) { (void)fputs(text, stdout); }

uint32_t platform_ticks(void) { return 0; }
