/* linux_rv32.c - start-up and platform for a process on 32-bit RISC-V without a C library, as
 * qemu-riscv32 runs it: there is none packaged. System calls are Linux's (write and exit). */
#include "platform.h"

#include <stddef.h>

enum { CALL_WRITE = 64, CALL_EXIT = 93 };

int main(void);
void _start(void);
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

static void call_system(uintptr_t number, uintptr_t first, uintptr_t second, uintptr_t third)
{
    register uintptr_t a0 __asm__("a0") = first;
    register uintptr_t a1 __asm__("a1") = second;
    register uintptr_t a2 __asm__("a2") = third;
    register uintptr_t a7 __asm__("a7") = number;
    __asm__ volatile("ecall" : "+r"(a0) : "r"(a1), "r"(a2), "r"(a7) : "memory");
}

void platform_write(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    call_system(CALL_WRITE, 1, (uintptr_t)text, length);
}

uint32_t platform_ticks(void) { return 0; }

void *memcpy(void *to, const void *from, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((volatile unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    }
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ((volatile unsigned char *)to)[i] = (unsigned char)byte;
    }
    return to;
}

void _start(void)
{
    call_system(CALL_EXIT, (uintptr_t)main(), 0, 0);
    for (;;) {
    }
}
