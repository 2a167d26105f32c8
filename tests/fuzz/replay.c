/* replay.c - runs a fuzz target over its corpus without a fuzzer, as one test case.
 *
 * A target is tests/fuzz/fuzz_<name>.c with libFuzzer's entry point; its corpus is the folder
 * tests/fuzz/corpus/<name>, one input per file. `make test` links the target with this driver,
 * `make fuzz` links it with libFuzzer. An input that once broke something stays in the corpus. */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Returns false when the file cannot be read. */
static bool replay_file(const char *path)
{
    FILE *in = fopen(path, "rb");
    if (in == NULL) {
        return false;
    }
    bool read_all = false;
    uint8_t *data = NULL;
    if (fseek(in, 0, SEEK_END) == 0) {
        size_t size = (size_t)ftell(in);
        rewind(in);
        data =
            malloc(size > 0 ? size : 1); /* Exactly as large: a sanitizer sees one byte too far. */
        read_all = data != NULL && fread(data, 1, size, in) == size;
        if (read_all) {
            (void)LLVMFuzzerTestOneInput(data, size);
        }
    }
    free(data);
    (void)fclose(in);
    return read_all;
}

int main(int argc, char **argv)
{
    (void)argc;
    const char *slash = strrchr(argv[0], '/');
    const char *name = (slash == NULL ? argv[0] : slash + 1) + strlen("fuzz_");
    char folder[512];
    (void)snprintf(folder, sizeof(folder), "tests/fuzz/corpus/%s", name);
    (void)printf("1..1\n");
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, NULL, alphasort);
    int inputs = 0;
    bool all_read = count >= 0;
    for (int i = 0; i < count; i++) {
        char path[1024];
        (void)snprintf(path, sizeof(path), "%s/%s", folder, entries[i]->d_name);
        if (entries[i]->d_name[0] != '.') {
            (void)printf("# %s\n", path);
            (void)fflush(stdout); /* The last line printed names the input that crashes. */
            all_read = replay_file(path) && all_read;
            inputs++;
        }
        free(entries[i]);
    }
    free(entries);
    bool passed = all_read && inputs > 0;
    (void)printf("%s 1 - fuzz_%s: %d inputs\n", passed ? "ok" : "not ok", name, inputs);
    return passed ? EXIT_SUCCESS : EXIT_FAILURE;
}
