/* file.c - whole files in, whole files out (see file.h).
 *
 * The temporary file stands beside the target, because a rename is atomic only within one file
 * system. Whoever writes it holds its lock: two writers of one target take turns, the last rename
 * wins and either file is whole. The lock ends with its holder, so that a temporary file whose
 * writer was killed is known by having no lock, and the next writer removes it. */
#include "graph/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum {
    FIRST_BUFFER_BYTES = 256,
    STREAM_CHUNK_BYTES = 1 << 16,
    FOLDER_MODE = 0777,
    FILE_MODE = 0666,
    OPEN_FOLDERS = 16,
    MEMORY_DEVICES = 1 /* Linux's number of /dev/null, zero, full and random. */
};

/* --- Reading -----------------------------------------------------------------------------------
 */

static graft_status fail_io(graft_env *env, const char *verb, const char *path)
{
    return GRAFT_FAIL(env, GRAFT_IO, "%s: cannot %s: %s", path, verb, strerror(errno));
}

/* A folder has no content, and that of a device may have no end; a terminal is a stream. */
static graft_status check_kind(graft_env *env, const char *path, const struct stat *info)
{
    const bool is_folder = S_ISDIR(info->st_mode);
    GRAFT_RETURN_IF(is_folder || S_ISBLK(info->st_mode) ||
                        (S_ISCHR(info->st_mode) && major(info->st_rdev) == MEMORY_DEVICES),
                    GRAFT_FAIL(env, GRAFT_IO, "%s: cannot read: is a %s", path,
                               is_folder ? "folder" : "device"));
    return GRAFT_OK;
}

/* Reads until `size` bytes or the end; returns the count, or -1 with errno set. */
static ssize_t read_fully(int file, uint8_t *data, size_t size)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(file, data + have, size - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        have += (size_t)got;
    }
    return (ssize_t)have;
}

/* Pipes, terminals and the files of /proc do not tell their size. */
static graft_status read_stream(graft_env *env, const char *path, int file, graft_buffer *content)
{
    graft_status status = GRAFT_OK;
    uint8_t *chunk = malloc(STREAM_CHUNK_BYTES);
    GRAFT_RETURN_IF(chunk == NULL,
                    GRAFT_FAIL(env, GRAFT_NO_MEMORY, "%s: no memory left to read it", path));
    ssize_t got = 0;
    do {
        got = read_fully(file, chunk, STREAM_CHUNK_BYTES);
        if (got < 0) {
            status = fail_io(env, "read", path);
            goto done;
        }
        graft_buffer_append(content, chunk, (size_t)got);
    } while (got > 0);
done:
    free(chunk);
    return status;
}

/* A file that shrinks while it is read is cut off; one that grows is read to its old size. */
static graft_status read_regular(graft_env *env, const char *path, int file, size_t expected,
                                 graft_buffer *content)
{
    content->capacity = expected + 1;
    content->data = graft_arena_alloc(content->arena, content->capacity);
    ssize_t got = read_fully(file, (uint8_t *)content->data, expected);
    GRAFT_RETURN_IF(got < 0, fail_io(env, "read", path));
    content->size = (size_t)got;
    return GRAFT_OK;
}

static graft_status read_content(graft_env *env, const char *path, int file, graft_buffer *content)
{
    struct stat info;
    GRAFT_RETURN_IF(fstat(file, &info) != 0, fail_io(env, "examine", path));
    GRAFT_PASS(check_kind(env, path, &info));
    if (S_ISREG(info.st_mode) && info.st_size > 0) {
        return read_regular(env, path, file, (size_t)info.st_size, content);
    }
    return read_stream(env, path, file, content);
}

graft_status graft_file_read(graft_env *env, graft_arena *arena, const char *path, uint8_t **data,
                             size_t *size)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    GRAFT_RETURN_IF(file < 0, fail_io(env, "open", path));
    graft_mark mark = graft_arena_mark(arena);
    graft_buffer content = {.arena = arena};
    graft_status status = read_content(env, path, file, &content);
    if (status == GRAFT_OK) {
        *data = (uint8_t *)content.data;
        *size = content.size;
    } else {
        graft_arena_release(arena, mark);
    }
    (void)close(file);
    return status;
}

graft_status graft_file_check_readable(graft_env *env, const char *path)
{
    struct stat info;
    GRAFT_RETURN_IF(access(path, R_OK) != 0 || stat(path, &info) != 0, fail_io(env, "open", path));
    return check_kind(env, path, &info);
}

bool graft_file_exists(const char *path) { return access(path, F_OK) == 0; }

/* `path` below the folder that is `levels` above the running program; NULL when it is not there. */
static const char *find_above(graft_env *env, int levels, const char *folder, const char *path)
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    program[length > 0 ? length : 0] = '\0';
    for (int i = 0; i < levels; i++) {
        char *slash = strrchr(program, '/');
        if (slash == NULL) {
            return NULL;
        }
        *slash = '\0';
    }
    const char *found = graft_arena_printf(env->life, "%s%s/%s", program, folder, path);
    return graft_file_exists(found) ? found : NULL;
}

const char *graft_file_shipped(graft_env *env, const char *path)
{
    enum { INSTALLED = 2, BUILT = 3 }; /* The program is PREFIX/bin/graft or out/MODE/graft. */
    const char *data = getenv("GRAFT_DATA");
    if (data != NULL && data[0] != '\0') {
        return graft_arena_printf(env->life, "%s/%s", data, path);
    }
    const char *found = find_above(env, INSTALLED, "/share/graft", path);
    if (found == NULL && !graft_file_exists(path)) {
        found = find_above(env, BUILT, "", path);
    }
    return found != NULL ? found : path;
}

const char *graft_file_cached(graft_env *env, const char *path)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (graft_file_exists("rules/graft.rules") && graft_file_exists("train/settings.yaml")) {
        return graft_arena_printf(env->life, "out/%s", path);
    }
    if (cache != NULL && cache[0] == '/') { /* The specification wants relative ones passed over. */
        return graft_arena_printf(env->life, "%s/graft/%s", cache, path);
    }
    return home != NULL && home[0] == '/'
               ? graft_arena_printf(env->life, "%s/.cache/graft/%s", home, path)
               : graft_arena_printf(env->life, "out/%s", path);
}

graft_status graft_file_check(graft_env *env, const char *path)
{
    struct stat found;
    char *folder = graft_arena_strdup(env->life, path);
    int problem = path[0] == '\0' ? ENOENT : 0;
    if (problem == 0 && stat(path, &found) == 0) {
        problem = S_ISDIR(found.st_mode) ? EISDIR : 0;
    } else if (problem == 0 && errno != ENOENT) {
        problem = errno;
    }
    bool exists = false;
    while (problem == 0 && !exists) { /* The nearest folder that there is. */
        char *slash = strrchr(folder, '/');
        const char *at = slash == NULL ? "." : slash == folder ? "/" : folder;
        if (slash != NULL) {
            *slash = '\0';
        }
        exists = stat(at, &found) == 0;
        if (exists) {
            problem = !S_ISDIR(found.st_mode) ? ENOTDIR : access(at, W_OK | X_OK) != 0 ? errno : 0;
        }
        exists = exists || slash == NULL || slash == folder;
    }
    return problem == 0 ? GRAFT_OK
                        : GRAFT_FAIL(env, GRAFT_IO, "cannot write %s: %s", path, strerror(problem));
}

bool graft_file_is_same(const char *a, const char *b)
{
    struct stat first, second;
    if (stat(a, &first) != 0 || stat(b, &second) != 0) {
        return strcmp(a, b) == 0;
    }
    return S_ISREG(first.st_mode) && first.st_ino == second.st_ino && first.st_dev == second.st_dev;
}

/* --- Writing -----------------------------------------------------------------------------------
 */

static bool write_fully(int file, const uint8_t *data, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t put = write(file, data + done, size - done);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return true;
}

graft_status graft_file_make_folders(graft_env *env, const char *path)
{
    GRAFT_SCOPED(env->scratch);
    char *copy = graft_arena_strdup(env->scratch, path);
    for (char *slash = strchr(copy + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        GRAFT_RETURN_IF(mkdir(copy, FOLDER_MODE) != 0 && errno != EEXIST,
                        fail_io(env, "create the folder", copy));
        *slash = '/';
    }
    return GRAFT_OK;
}

/* The rename itself must reach the disk. Some file systems cannot sync a folder and say so. */
static graft_status sync_folder(graft_env *env, const char *path)
{
    graft_status status = GRAFT_OK;
    GRAFT_SCOPED(env->scratch);
    char *folder = graft_arena_strdup(env->scratch, path);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        folder = graft_arena_strdup(env->scratch, ".");
    } else {
        slash[slash == folder ? 1 : 0] = '\0';
    }
    int file = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0 || (fsync(file) != 0 && errno != EINVAL && errno != ENOTSUP)) {
        status = fail_io(env, "sync", folder);
    }
    if (file >= 0) {
        (void)close(file);
    }
    return status;
}

/* Devices and pipes are written in place: a rename would replace them by a file. */
static graft_status write_in_place(graft_env *env, const char *path, const void *data, size_t size)
{
    int file = open(path, O_WRONLY | O_CLOEXEC);
    GRAFT_RETURN_IF(file < 0, fail_io(env, "open", path));
    graft_status status = GRAFT_OK;
    if (!write_fully(file, data, size)) {
        status = fail_io(env, "write", path);
    }
    if (close(file) != 0 && status == GRAFT_OK) {
        status = fail_io(env, "write", path);
    }
    return status;
}

/* A new temporary file with its lock, or -1 and errno. Waits for another writer of it. */
static int open_temporary(const char *temporary)
{
    int flags = O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
    for (;;) {
        struct stat mine;
        struct stat there;
        int file = open(temporary, flags, FILE_MODE);
        if (file < 0 && errno == EACCES && unlink(temporary) == 0) {
            continue; /* One that was left behind cannot be written. */
        }
        if (file < 0) {
            return file;
        }
        while (flock(file, LOCK_EX) != 0 && errno == EINTR) { /* Or there are no locks here. */
        }
        bool is_there = fstat(file, &mine) == 0 && stat(temporary, &there) == 0 &&
                        mine.st_ino == there.st_ino && mine.st_dev == there.st_dev;
        if (is_there && mine.st_size == 0) {
            return file;
        }
        if (is_there) { /* Left behind by a writer that was killed. */
            (void)unlink(temporary);
        }
        (void)close(file); /* Or another writer has made it the target. */
    }
}

/* `old`, when not NULL, is the file that will be replaced: its mode is kept. */
static graft_status replace_file(graft_env *env, const char *path, const struct stat *old,
                                 const void *data, size_t size)
{
    GRAFT_SCOPED(env->scratch);
    char *temporary = graft_arena_printf(env->scratch, "%s.partial", path);
    GRAFT_PASS(graft_file_make_folders(env, path));
    int file = open_temporary(temporary);
    GRAFT_RETURN_IF(file < 0, fail_io(env, "create", path));
    graft_status status = GRAFT_OK;
    if (old != NULL) {
        (void)fchmod(file, old->st_mode & 07777);
    }
    if (!write_fully(file, data, size) || fsync(file) != 0) {
        status = fail_io(env, "write", path);
    } else if (rename(temporary, path) != 0) {
        status = fail_io(env, "replace", path);
    }
    if (status != GRAFT_OK) {
        (void)unlink(temporary);
    }
    (void)flock(file, LOCK_UN); /* A child that was forked meanwhile has it, too. */
    if (close(file) != 0 && status == GRAFT_OK) {
        status = fail_io(env, "write", path);
    }
    return status == GRAFT_OK ? sync_folder(env, path) : status;
}

graft_status graft_file_write(graft_env *env, const char *path, const void *data, size_t size)
{
    struct stat info;
    GRAFT_RETURN_IF(path[0] == '\0', GRAFT_FAIL(env, GRAFT_IO, "cannot write: the path is empty"));
    if (stat(path, &info) != 0) { /* Nothing there, or a link to nothing, which is replaced. */
        return replace_file(env, path, NULL, data, size);
    }
    GRAFT_RETURN_IF(S_ISDIR(info.st_mode),
                    GRAFT_FAIL(env, GRAFT_IO, "%s: cannot write: is a folder", path));
    if (!S_ISREG(info.st_mode)) {
        return write_in_place(env, path, data, size);
    }
    char *target = realpath(path, NULL); /* A link stays a link: what it names is replaced. */
    GRAFT_RETURN_IF(target == NULL, fail_io(env, "examine", path));
    graft_status status = replace_file(env, target, &info, data, size);
    free(target);
    return status;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    (void)remove(path);
    return 0;
}

void graft_file_remove_folder(const char *path)
{
    (void)nftw(path, remove_entry, OPEN_FOLDERS, FTW_DEPTH | FTW_PHYS);
}

/* --- Buffers -----------------------------------------------------------------------------------
 */

/* Room for `more` bytes and the terminator; the size at least doubles, so appending is linear. */
static void reserve(graft_buffer *buffer, size_t more)
{
    if (buffer->capacity - buffer->size > more) {
        return;
    }
    size_t capacity = buffer->capacity > 0 ? 2 * buffer->capacity : FIRST_BUFFER_BYTES;
    if (capacity - buffer->size <= more) {
        capacity = buffer->size + more + 1;
    }
    char *grown = graft_arena_alloc(buffer->arena, capacity);
    if (buffer->size > 0) {
        memcpy(grown, buffer->data, buffer->size);
    }
    buffer->data = grown;
    buffer->capacity = capacity;
}

void graft_buffer_append(graft_buffer *buffer, const void *data, size_t size)
{
    reserve(buffer, size);
    if (size > 0) {
        memcpy(buffer->data + buffer->size, data, size);
    }
    buffer->size += size;
    buffer->data[buffer->size] = '\0';
}

void graft_buffer_printf(graft_buffer *buffer, const char *format, ...)
{
    va_list arguments;
    va_list again;
    va_start(arguments, format);
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (length > 0) {
        reserve(buffer, (size_t)length);
        (void)vsnprintf(buffer->data + buffer->size, (size_t)length + 1, format, again);
        buffer->size += (size_t)length;
    } else {
        graft_buffer_append(buffer, "", 0);
    }
    va_end(again);
}
