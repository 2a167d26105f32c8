/* mps2_an386.c - start-up and platform for the ARM MPS2 board with a Cortex-M4 (FPGA image AN386),
 * as `qemu-system-arm -M mps2-an386` emulates it: vector table, memory set-up, output and exit by
 * semihosting (ARM document 100863), the few library functions that a compiler may call, and how
 * deep the stack went. */
#include "platform.h"

#include <stddef.h>

enum { SEMIHOSTING_WRITE0 = 0x04, SEMIHOSTING_EXIT_EXTENDED = 0x20, STOPPED_BY_EXIT = 0x20026 };

#define STACK_PATTERN 0xdeadbeefu

/* From mps2_an386.ld. */
extern uint32_t data_load[], data_begin[], data_end[], bss_begin[], bss_end[];
extern uint32_t stack_begin[], stack_end[];

/* CMSDK timer 0: counts down at the system clock of 25 MHz. With -icount shift=0 an instruction
 * takes one nanosecond, so a tick is 40 instructions. */
typedef struct {
    volatile uint32_t control;
    volatile uint32_t value;
    volatile uint32_t reload;
} cmsdk_timer;
#define TIMER ((cmsdk_timer *)0x40000000u)

int main(void);
void reset_handler(void);
void fault_handler(void);
void *memcpy(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);

typedef void (*handler)(void);
__attribute__((section(".vectors"), used)) static const handler vectors[16] = {
    (handler)(uintptr_t)stack_end,
    reset_handler,
    fault_handler, /* NMI */
    fault_handler, /* hard fault */
    fault_handler, /* memory management */
    fault_handler, /* bus fault */
    fault_handler, /* usage fault */
};

static void call_semihosting(uint32_t operation, uintptr_t argument)
{
    register uint32_t r0 __asm__("r0") = operation;
    register uintptr_t r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}

static void stop(uint32_t status)
{
    const uint32_t block[2] = {STOPPED_BY_EXIT, status};
    call_semihosting(SEMIHOSTING_EXIT_EXTENDED, (uintptr_t)block);
    for (;;) {
    }
}

void platform_write(const char *text) { call_semihosting(SEMIHOSTING_WRITE0, (uintptr_t)text); }

uint32_t platform_ticks(void) { return ~TIMER->value; }

static void write_stack_depth(void)
{
    char text[] = "# bytes of stack: 0000000\n";
    const uint32_t *lowest = stack_begin;
    while (lowest < stack_end && *lowest == STACK_PATTERN) {
        lowest++;
    }
    uint32_t depth = (uint32_t)((uintptr_t)stack_end - (uintptr_t)lowest);
    for (uint32_t i = 24; i > 17; i--) {
        text[i] = (char)('0' + depth % 10);
        depth /= 10;
    }
    platform_write(text);
}

void fault_handler(void)
{
    platform_write("# the processor faulted\n");
    stop(99);
}

void reset_handler(void)
{
    for (uint32_t *to = data_begin, *from = data_load; to < data_end; to++, from++) {
        *to = *from;
    }
    for (uint32_t *to = bss_begin; to < bss_end; to++) {
        *to = 0;
    }
    const uint32_t *here = (const uint32_t *)__builtin_frame_address(0);
    for (uint32_t *to = stack_begin; to < here - 64; to++) {
        *to = STACK_PATTERN;
    }
    TIMER->reload = UINT32_MAX;
    TIMER->value = UINT32_MAX;
    TIMER->control = 1;
    int status = main();
    write_stack_depth();
    stop((uint32_t)status);
}

void *memcpy(void *to, const void *from, size_t bytes)
{
    unsigned char *t = (unsigned char *)to;
    const unsigned char *f = (const unsigned char *)from;
    for (size_t i = 0; i < bytes; i++) {
        t[i] = f[i];
    }
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    unsigned char *t = (unsigned char *)to;
    for (size_t i = 0; i < bytes; i++) {
        t[i] = (unsigned char)byte;
    }
    return to;
}
