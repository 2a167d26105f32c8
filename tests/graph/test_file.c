/* Whole files: every failure names the path, and whatever goes wrong the old file stays. */
#include "graph/base/file.h"

#include "graph/base/rng.h"
#include "tests/support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* Stands in front of the C library's fsync, to count its calls and to play a disk that fails. */
static int sync_count;
static int sync_fails_at; /* The call that fails, from 1; 0 when none. */
int fsync(int fd)
{
    sync_count++;
    if (sync_count == sync_fails_at) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fsync, fd);
}

static void write_text(graft_env *env, const char *path, const char *text)
{
    graft_status status = graft_file_write(env, path, text, strlen(text));
    if (status != GRAFT_OK) {
        fail_msg("%s", env->message);
    }
}

static size_t count_entries(const char *folder)
{
    size_t count = 0;
    DIR *open_folder = opendir(folder);
    assert_non_null(open_folder);
    for (struct dirent *entry = readdir(open_folder); entry != NULL; entry = readdir(open_folder)) {
        count += entry->d_name[0] != '.' ? 1u : 0u;
    }
    (void)closedir(open_folder);
    return count;
}

CHECK_CASE(test_write_then_read)
{
    const char *path = check_path("new/deep/file.txt");
    assert_false(graft_file_exists(path));
    write_text(env, path, "first");
    assert_string_equal(check_text(path), "first");
    assert_true(graft_file_exists(path));
    write_text(env, path, "");
    assert_string_equal(check_text(path), "");
    write_text(env, path, "second, longer");
    assert_string_equal(check_text(path), "second, longer");
    assert_int_equal(count_entries(check_path("new/deep")), 1);
}

CHECK_CASE(test_relative_path_without_folder)
{
    int here = open(".", O_RDONLY | O_DIRECTORY);
    assert_int_equal(chdir(check_folder()), 0);
    write_text(env, "plain.txt", "x");
    assert_string_equal(check_text("plain.txt"), "x");
    assert_int_equal(fchdir(here), 0);
    (void)close(here);
}

CHECK_CASE(test_bytes_of_any_value)
{
    enum { SIZE = 1 << 20 };
    const char *path = check_path("bytes");
    uint8_t *bytes = graft_arena_alloc(env->unit, SIZE);
    graft_rng rng = check_rng(3);
    for (size_t i = 0; i < SIZE; i++) {
        bytes[i] = (uint8_t)graft_rng_next(&rng);
    }
    CHECK_OK(graft_file_write(env, path, bytes, SIZE));
    uint8_t *back = NULL;
    size_t size = 0;
    CHECK_OK(graft_file_read(env, env->unit, path, &back, &size));
    assert_int_equal(size, SIZE);
    assert_memory_equal(back, bytes, SIZE);
}

CHECK_CASE(test_read_failures)
{
    uint8_t *data = NULL;
    size_t size = 99;
    const char *missing = check_path("missing");
    check_failed(env, graft_file_read(env, env->unit, missing, &data, &size), GRAFT_IO,
                 "missing: cannot open: No such file");
    check_failed(env, graft_file_read(env, env->unit, check_folder(), &data, &size), GRAFT_IO,
                 "cannot read: is a folder");
    const char *locked = check_path("locked");
    write_text(env, locked, "x");
    assert_int_equal(chmod(locked, 0), 0);
    if (geteuid() != 0) { /* Root may read everything. */
        check_failed(env, graft_file_read(env, env->unit, locked, &data, &size), GRAFT_IO,
                     "locked: cannot open: Permission denied");
    }
    /* A file that opens and then cannot be read. */
    graft_status status = graft_file_read(env, env->unit, "/proc/self/mem", &data, &size);
    check_failed(env, status, GRAFT_IO, "/proc/self/mem: cannot read: ");
    assert_null(data);
    assert_int_equal(size, 99);
}

/* Files that do not tell their size: /proc, and a pipe that delivers more than one chunk. */
CHECK_CASE(test_read_streams)
{
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_file_read(env, env->unit, "/proc/self/status", &data, &size));
    assert_true(size > 10);
    assert_int_equal(strlen((const char *)data), size);

    enum { SENT = 300000 };
    const char *pipe_path = check_path("pipe");
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int out = open(pipe_path, O_WRONLY);
        char chunk[1000];
        memset(chunk, 'p', sizeof(chunk));
        for (size_t sent = 0; sent < SENT; sent += sizeof(chunk)) {
            if (write(out, chunk, sizeof(chunk)) != (ssize_t)sizeof(chunk)) {
                _exit(1);
            }
        }
        _exit(0);
    }
    CHECK_OK(graft_file_read(env, env->unit, pipe_path, &data, &size));
    assert_int_equal(size, SENT);
    assert_int_equal(strlen((const char *)data), SENT);
    (void)waitpid(child, NULL, 0);
}

CHECK_CASE(test_things_in_the_way)
{
    const char *in_way = check_path("in_way");
    assert_int_equal(mkdir(in_way, 0700), 0);
    check_failed(env, graft_file_write(env, in_way, "x", 1), GRAFT_IO,
                 "in_way: cannot write: is a folder");
    const char *file = check_path("file");
    write_text(env, file, "old");
    check_failed(env, graft_file_write(env, check_path("file/a/b"), "x", 1), GRAFT_IO,
                 "file/a: cannot create the folder: Not a directory");
    assert_string_equal(check_text(file), "old");
    check_failed(env, graft_file_write(env, check_path("fresh/"), "x", 1), GRAFT_IO,
                 "fresh/: cannot replace: ");
    check_failed(env, graft_file_write(env, "", "x", 1), GRAFT_IO, "the path is empty");
    assert_int_equal(count_entries(check_folder()), 3);
}

/* A link keeps pointing where it did; a replaced file keeps its mode. */
CHECK_CASE(test_links_and_modes_stay)
{
    struct stat info;
    const char *target = check_path("target");
    const char *link_path = check_path("link");
    write_text(env, target, "old");
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink("target", link_path), 0);
    write_text(env, link_path, "new");
    assert_string_equal(check_text(target), "new");
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

/* A pipe or device is written to, not replaced by a file. The pipe is the test's own: a fault here,
 * run by root, would replace the system's devices. */
CHECK_CASE(test_pipe_is_not_replaced)
{
    struct stat info;
    char text[8] = "";
    const char *path = check_path("pipe");
    assert_int_equal(mkfifo(path, 0600), 0);
    int reader = open(path, O_RDONLY | O_NONBLOCK);
    assert_true(reader >= 0);
    write_text(env, path, "hello");
    assert_int_equal(read(reader, text, sizeof(text) - 1), 5);
    assert_string_equal(text, "hello");
    (void)close(reader);
    assert_int_equal(stat(path, &info), 0);
    assert_true(S_ISFIFO(info.st_mode));
    assert_int_equal(count_entries(check_folder()), 1);
}

/* A device's own errors are reported: a copy of /dev/full, for the same reason. */
CHECK_CASE(test_device_errors)
{
    enum { MEMORY_DEVICES = 1, FULL = 7 };
    const char *path = check_path("full");
    int made = mknod(path, S_IFCHR | 0600, makedev(MEMORY_DEVICES, FULL));
    int opened = made == 0 ? open(path, O_WRONLY) : -1;
    if (opened >= 0) {
        (void)close(opened);
        check_failed(env, graft_file_write(env, path, "x", 1), GRAFT_IO,
                     "full: cannot write: No space left on device");
    }
    if (opened < 0) {
        CHECK_SKIP("device files cannot be made or used here (needs root)");
    }
}

/* The disk that fills up half-way, simulated by the limit on the size of a file. */
CHECK_CASE(test_failed_write_leaves_the_old_file)
{
    enum { SIZE = 1 << 20, LIMIT = 1 << 16 };
    const char *path = check_path("kept");
    write_text(env, path, "old");
    char *large = graft_arena_alloc(env->unit, SIZE);
    struct rlimit old;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    struct rlimit low = {.rlim_cur = LIMIT, .rlim_max = old.rlim_max};
    void (*old_handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &low), 0);
    graft_status status = graft_file_write(env, path, large, SIZE);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    (void)signal(SIGXFSZ, old_handler);
    check_failed(env, status, GRAFT_IO, "kept: cannot write: File too large");
    assert_string_equal(check_text(path), "old");
    assert_int_equal(count_entries(check_folder()), 1); /* Nothing half-written is left either. */
}

/* The data reach the disk before the rename, the rename before the return; a disk that fails in the
 * first step leaves the old file. */
CHECK_CASE(test_sync_order_and_failure)
{
    const char *path = check_path("synced");
    sync_count = 0;
    sync_fails_at = 0;
    write_text(env, path, "old");
    assert_int_equal(sync_count, 2);
    sync_count = 0;
    sync_fails_at = 1;
    check_failed(env, graft_file_write(env, path, "new", 3), GRAFT_IO,
                 "synced: cannot write: Input/output error");
    assert_string_equal(check_text(path), "old");
    sync_count = 0;
    sync_fails_at = 2;
    check_failed(env, graft_file_write(env, path, "new", 3), GRAFT_IO, "cannot sync: Input/output");
    assert_string_equal(check_text(path),
                        "new"); /* Whole, but the caller knows that it may not survive. */
    sync_fails_at = 0;
    assert_int_equal(count_entries(check_folder()), 1);
}

/* Writes files of one repeated letter for ever, each a different size. */
static void write_forever(const char *path)
{
    enum { LETTERS = 26, BASE = 200000 };
    graft_env env;
    if (graft_env_open(&env) != GRAFT_OK) {
        _exit(1);
    }
    for (size_t turn = 0;; turn = (turn + 1) % LETTERS) {
        size_t size = BASE + turn;
        char *text = malloc(size);
        if (text == NULL) {
            _exit(1);
        }
        memset(text, 'a' + (int)turn, size);
        if (graft_file_write(&env, path, text, size) != GRAFT_OK) {
            _exit(1);
        }
        free(text);
    }
}

static void check_whole(graft_env *env, const char *path)
{
    uint8_t *data = NULL;
    size_t size = 0;
    CHECK_OK(graft_file_read(env, env->unit, path, &data, &size));
    assert_true(size >= 200000);
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(data[i], 'a' + (int)(size - 200000));
    }
}

/* What was left behind is replaced, whatever it holds and whoever may read it; one that is being
 * written is waited for. */
CHECK_CASE(test_left_behind)
{
    const char *path = check_path("file");
    const char *partial = check_path("file.partial");
    write_text(env, partial, "half of a longer text");
    assert_int_equal(chmod(partial, 0400), 0);
    write_text(env, path, "whole");
    assert_string_equal(check_text(path), "whole");
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    assert_true((info.st_mode & 0200) != 0);
    assert_int_equal(count_entries(check_folder()), 1);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int file = open(partial, O_WRONLY | O_CREAT, 0666);
        bool is_held = file >= 0 && flock(file, LOCK_EX) == 0 && write(file, "x", 1) == 1;
        (void)usleep(100000);
        _exit(is_held && graft_file_exists(partial) ? 0 : 1);
    }
    while (!graft_file_exists(partial)) {
        (void)usleep(100);
    }
    (void)usleep(10000);
    write_text(env, path, "later");
    int how = 0;
    assert_int_equal(waitpid(child, &how, WNOHANG), child); /* It had ended before. */
    assert_int_equal(how, 0);
    assert_string_equal(check_text(path), "later");
    assert_int_equal(count_entries(check_folder()), 1);
}

/* Killed at any moment: the file is one of the versions, whole. */
CHECK_CASE(test_kill_leaves_a_whole_file)
{
    const char *path = check_path("whole");
    graft_rng rng = check_rng(4);
    for (int round = 0; round < 20; round++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            write_forever(path);
        }
        while (!graft_file_exists(path)) {
            (void)usleep(100);
        }
        (void)usleep(500 + graft_rng_below(&rng, 5000));
        assert_int_equal(kill(child, SIGKILL), 0);
        (void)waitpid(child, NULL, 0);
        check_whole(env, path);
        graft_arena_reset(env->scratch);
    }
    write_text(env, path, "new");
    assert_int_equal(count_entries(check_folder()), 1); /* What the killed have left is gone. */
}

CHECK_CASE(test_buffer_grows)
{
    graft_buffer buffer = {.arena = env->unit};
    graft_buffer_append(&buffer, NULL, 0);
    assert_string_equal(buffer.data, "");
    for (int i = 0; i < 1000; i++) {
        graft_buffer_printf(&buffer, "%d,", i);
        assert_int_equal(strlen(buffer.data), buffer.size);
    }
    graft_buffer_printf(&buffer, "%s", "");
    assert_int_equal(buffer.size, 10 * 2 + 90 * 3 + 900 * 4);
    assert_memory_equal(buffer.data + buffer.size - 8, "998,999,", 9);
    char large[5000];
    memset(large, 'z', sizeof(large));
    graft_buffer_append(&buffer, large, sizeof(large));
    assert_memory_equal(buffer.data, "0,1,2,", 6);
    assert_int_equal(buffer.data[buffer.size - 1], 'z');
    assert_int_equal(buffer.data[buffer.size], 0);
}

/* Sizes around the capacity, where an off-by-one would lose the terminator. */
CHECK_CASE(test_buffer_boundaries)
{
    char text[600];
    memset(text, 'b', sizeof(text));
    for (size_t size = 250; size < 520; size++) {
        graft_buffer appended = {.arena = env->unit};
        graft_buffer printed = {.arena = env->unit};
        graft_buffer_append(&appended, text, size);
        graft_buffer_printf(&printed, "%.*s", (int)size, text);
        assert_int_equal(strlen(appended.data), size);
        assert_string_equal(appended.data, printed.data);
        assert_true(appended.size < appended.capacity);
        assert_true(printed.size < printed.capacity);
    }
}
