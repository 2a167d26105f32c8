/* YAML settings from hostile bytes: the parser refuses with a message or gives a sound tree. */
#include "graph/base/settings.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Walks the whole tree; no recursion deeper than the parser allows. */
static size_t check_tree(const graft_yaml *node, int depth)
{
    size_t count = 1;
    assert(depth <= 32 && node->line > 0 && node->file != NULL);
    if (node->kind == GRAFT_YAML_SCALAR) {
        assert(node->text != NULL && node->count == 0);
        return count + strlen(node->text);
    }
    for (uint32_t i = 0; i < node->count; i++) {
        const graft_yaml *item = &node->items[i];
        assert((item->key != NULL) == (node->kind == GRAFT_YAML_MAPPING));
        if (item->key != NULL) {
            assert(graft_yaml_find(node, item->key) == item); /* Keys are unique. */
        }
        count += check_tree(item, depth + 1);
    }
    return count;
}

static void read_values(graft_env *env, const graft_yaml *root)
{
    const char *text = NULL;
    int64_t integer = 0;
    double real = 0.0;
    for (uint32_t i = 0; root->kind == GRAFT_YAML_MAPPING && i < root->count; i++) {
        const char *key = root->items[i].key;
        if (graft_yaml_text(env, root, key, &text) == GRAFT_OK) {
            assert(text == root->items[i].text);
        }
        if (graft_yaml_integer(env, root, key, -5, 1000000, &integer) == GRAFT_OK) {
            assert(integer >= -5 && integer <= 1000000);
        }
        if (graft_yaml_real(env, root, key, -1.5, 1e9, &real) == GRAFT_OK) {
            assert(real >= -1.5 && real <= 1e9);
        }
        graft_env_clear(env);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 4096) { /* Finding members again is quadratic in their number. */
        return 0;
    }
    graft_env env;
    if (graft_env_open(&env) != GRAFT_OK) {
        return 0;
    }
    const graft_yaml *root = NULL;
    graft_status status = graft_yaml_parse(&env, env.unit, "input", data, size, &root);
    if (status == GRAFT_OK) {
        assert(env.message[0] == '\0');
        (void)check_tree(root, 0);
        read_values(&env, root);
    } else {
        assert(root == NULL && strncmp(env.message, "input:", 6) == 0);
        assert(strchr(env.message, '\n') == NULL);
    }
    graft_env_close(&env);
    return 0;
}
