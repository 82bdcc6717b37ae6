/* SPDX-License-Identifier: Apache-2.0 */
#include "inventory.h"

#include <stdlib.h>
#include <string.h>

#include "communication.h"
#include "memory.h"
#include "policy/policy.h"
#include "policy/print.h"
#include "printable.h"
#include "summary.h"

enum {
    RULE_NAME_LENGTH = 60, /* of the part that comes from the kernel's name */
};

/* A rule's name made of letters, digits and '-'; the number keeps rules apart. */
static char *rule_name_of(const char *name, size_t number)
{
    char text[RULE_NAME_LENGTH + 1];
    size_t length = 0;

    for (; *name != '\0' && length < RULE_NAME_LENGTH; name++) {
        bool plain = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
                     (*name >= '0' && *name <= '9') || *name == '_';

        if (plain || (length > 0 && text[length - 1] != '-')) {
            text[length++] = plain ? *name : '-';
        }
    }
    text[length] = '\0';
    return memory_format("%zu-%s", number, text);
}

static void print_comment(const struct results_kernel *kernel, FILE *stream)
{
    char *name = printable_copy(kernel->name), *library = printable_copy(kernel->library);

    fprintf(stream, "# %s: %lld launches by %s", name, (long long)kernel->launches.total,
            library[0] != '\0' ? library : "?");
    if (kernel->shapes_known) {
        fprintf(stream, ", grid_blocks %lld..%lld", (long long)kernel->grid_blocks.least,
                (long long)kernel->grid_blocks.most);
    }
    fputc('\n', stream);
    free(name);
    free(library);
}

static void print_rule(const struct results_kernel *kernel, size_t number, FILE *stream)
{
    char *name = rule_name_of(kernel->name, number), *pattern = communication_escape(kernel->name);
    const char *const patterns[] = {pattern};
    struct policy_rule rule = {
        .section = POLICY_SECTION_KERNEL,
        .name = name,
        .selectors.name = {.count = 1, .patterns = patterns},
    };
    struct policy_setting_value *domain = &rule.settings[POLICY_SETTING_MEM_SYNC_DOMAIN];

    domain->action = POLICY_ACTION_SET;
    domain->when_set = POLICY_WHEN_SET_KEEP;
    domain->value.mem_sync_domain = POLICY_MEM_SYNC_DOMAIN_REMOTE;
    fputc('\n', stream);
    print_comment(kernel, stream);
    policy_rule_print(stream, &rule);
    free(name);
    free(pattern);
}

/* Kernels of one name - instances of one template - need one rule. */
static bool named_before(const struct results_kernel **kernels, size_t index)
{
    for (size_t i = 0; i < index; i++) {
        if (strcmp(kernels[i]->name, kernels[index]->name) == 0) {
            return true;
        }
    }
    return false;
}

void inventory_print_policy(const struct results *results, FILE *stream)
{
    const struct results_kernel **sorted = summary_sorted_kernels(results);
    size_t rules = 0, others = 0;

    fputs("# A policy to start from. Rules stand for kernels whose names speak of communication;\n"
          "# whether a remote memory-synchronization domain helps them is to be measured. Nothing\n"
          "# is changed until mode is enforce.\n"
          "[policy]\n"
          "version = 1\n"
          "mode = observe\n",
          stream);
    for (size_t i = 0; i < results->kernel_count; i++) {
        if (!communication_named(sorted[i]->name)) {
            others++;
        } else if (!named_before(sorted, i)) {
            print_rule(sorted[i], ++rules, stream);
        }
    }
    if (others > 0) {
        fputs("\n# Kernels without a rule:\n", stream);
    }
    for (size_t i = 0; i < results->kernel_count; i++) {
        if (!communication_named(sorted[i]->name)) {
            print_comment(sorted[i], stream);
        }
    }
    free(sorted);
}
