/* platform.h - what main.c needs of where it runs. */
#ifndef TESTS_FIRMWARE_PLATFORM_H
#define TESTS_FIRMWARE_PLATFORM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void platform_write(const char *text);
/* A clock that counts instructions in units of PLATFORM_TICK_INSTRUCTIONS; 0 where there is none.
 */
uint32_t platform_ticks(void);
#define PLATFORM_TICK_INSTRUCTIONS 40

#ifdef __cplusplus
}
#endif

#endif
