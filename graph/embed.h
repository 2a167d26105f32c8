/* embed.h - files of the checkout inside the program: the assembler copies them in. The compiler
 * runs in the root of the project; no compiler lists what is embedded as a dependency, so the
 * Makefile names the files that such an object depends on. */
#pragma once

/* The bytes of a file as graft_text_SYMBOL, up to graft_text_SYMBOL_end, where a zero byte is. */
#define GRAFT_EMBED(symbol, path)                                                                  \
    __asm__(".section .rodata\n"                                                                   \
            "graft_text_" #symbol ":\n"                                                            \
            ".incbin \"" path "\"\n"                                                               \
            "graft_text_" #symbol "_end:\n"                                                        \
            ".byte 0\n"                                                                            \
            ".previous\n");                                                                        \
    extern const char graft_text_##symbol[] __asm__("graft_text_" #symbol);                        \
    extern const char graft_text_##symbol##_end[] __asm__("graft_text_" #symbol "_end");
