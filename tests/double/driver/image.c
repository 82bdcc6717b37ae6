/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a module is loaded from. Tests write images as text, one kernel a line:
 *
 *     kernel _Z4axpyPff cluster=2,1,1 max_threads=512 regs=64 static_shared=1024 params=8,4
 *
 * Further keys: must_be_set=1 (no launch without a cluster size), non_portable=1. Lines beginning
 * with '#' are comments; an image begins with a kernel or a comment. Anything else (fatbin, cubin,
 * PTX) is accepted with unknown content: each kernel that is asked for by name exists.
 */
#include "driver.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct kernel_code *code_new(const char *name, size_t length)
{
    struct kernel_code *code = calloc(1, sizeof(*code));
    if (code == NULL || (code->name = strndup(name, length)) == NULL)
        abort();
    code->parameter_count = -1;
    code->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    code->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 32;
    code->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] =
        10 * configuration.capability_major + configuration.capability_minor;
    code->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] =
        code->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION];
    code->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    code->attributes[CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT] = -1;
    return code;
}

static void parse_parameters(struct kernel_code *code, const char *value)
{
    int count = 0;
    while (*value >= '0' && *value <= '9' && count < PARAMETERS_MAX) {
        char *end;
        code->parameter_size[count++] = (unsigned int)strtoul(value, &end, 10);
        value = *end == ',' ? end + 1 : end;
    }
    code->parameter_count = count;
}

static bool parse_cluster(struct kernel_code *code, const char *value)
{
    if (sscanf(value, "%u,%u,%u", &code->cluster[0], &code->cluster[1], &code->cluster[2]) != 3)
        return false;
    /* Measured on a kernel with __cluster_dims__(2): width 2, and the size must be set. */
    for (int i = 0; i < 3; i++)
        code->attributes[CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH + i] = (int)code->cluster[i];
    code->attributes[CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET] = 1;
    return true;
}

static const struct {
    const char *key;
    int attribute;
} integer_keys[] = {
    {"max_threads=", CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {"regs=", CU_FUNC_ATTRIBUTE_NUM_REGS},
    {"static_shared=", CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES},
    {"must_be_set=", CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET},
    {"non_portable=", CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED},
};

static bool parse_key(struct kernel_code *code, const char *text)
{
    if (strncmp(text, "cluster=", 8) == 0)
        return parse_cluster(code, text + 8);
    if (strncmp(text, "params=", 7) == 0) {
        parse_parameters(code, text + 7);
        return true;
    }
    for (size_t i = 0; i < sizeof(integer_keys) / sizeof(integer_keys[0]); i++) {
        size_t length = strlen(integer_keys[i].key);
        if (strncmp(text, integer_keys[i].key, length) != 0)
            continue;
        code->attributes[integer_keys[i].attribute] = atoi(text + length);
        return true;
    }
    return false;
}

static bool parse_line(struct image *image, const char *line, size_t length)
{
    if (length == 0 || line[0] == '#')
        return true;
    if (length < 8 || strncmp(line, "kernel ", 7) != 0)
        return false;
    const char *end = line + length;
    const char *at = line + 7;
    size_t word = strcspn(at, " \n");
    struct kernel_code *code = code_new(at, word);
    struct kernel_code **last = &image->kernels;
    while (*last != NULL)
        last = &(*last)->next;
    *last = code;
    for (at += word; at < end && *at == ' '; at += word) {
        at++;
        word = strcspn(at, " \n");
        if (word != 0 && !parse_key(code, at))
            return false;
    }
    return true;
}

struct image *image_parse(const void *data)
{
    struct image *image = calloc(1, sizeof(*image));
    if (image == NULL)
        abort();
    const char *text = data;
    if (strncmp(text, "kernel ", 7) != 0 && text[0] != '#') {
        image->on_demand = true;
        return image;
    }
    while (*text != '\0') {
        size_t length = strcspn(text, "\n");
        if (!parse_line(image, text, length)) {
            image_free(image);
            return NULL;
        }
        text += length;
        if (*text == '\n')
            text++;
    }
    return image;
}

void image_free(struct image *image)
{
    while (image->kernels != NULL) {
        struct kernel_code *next = image->kernels->next;
        free(image->kernels->name);
        free(image->kernels);
        image->kernels = next;
    }
    while (image->globals != NULL) {
        struct image_global *next = image->globals->next;
        free(image->globals->name);
        free(image->globals);
        image->globals = next;
    }
    free(image);
}

struct kernel_code *image_find(struct image *image, const char *name)
{
    struct kernel_code **at = &image->kernels;
    for (; *at != NULL; at = &(*at)->next)
        if (strcmp((*at)->name, name) == 0)
            return *at;
    if (image->on_demand)
        *at = code_new(name, strlen(name));
    return *at;
}
