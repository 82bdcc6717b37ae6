/* SPDX-License-Identifier: Apache-2.0 */

/* cudapolicy show: the machine's devices, and the lists that stand once in the code. */

#include "command.h"

#include <stdlib.h>
#include <string.h>

#include "devices.h"
#include "entry_points.h"
#include "json_output.h"
#include "partitions.h"
#include "place/split.h"
#include "policy/vocabulary.h"
#include "policy_input.h"
#include "report/outcome.h"
#include "show_lists.h"
#include "site_input.h"
#include "table.h"

static int show_main(const struct command *command, int argc, char **argv);

const struct command command_show = {
    .name = "show",
    .summary = "show devices, or what a policy may say",
    .usage = "[OPTION]...",
    .help =
        "Without a choice, shows the versions of the command, the library and the driver, the\n"
        "devices, and how their SMs can be divided. Where there is no driver or no GPU, it says\n"
        "so, and that is no error.\n\n"
        "Options:\n"
        "  -p, --policy FILE   with the devices: what the partitions of this policy get on each\n"
        "      --devices       the driver and the devices\n"
        "      --settings      sections, selectors and settings of the policy language\n"
        "      --entry-points  the functions of CUDA that are wrapped\n"
        "      --exceptions    those that are not, each with the reason\n"
        "      --reasons       outcomes of a setting, and reasons for a refusal\n"
        "      --policies      the policies that are installed with this command\n"
        "      --variables     the environment variables that are read\n"
        "      --json          print as JSON\n"
        "  -w, --wide          do not shorten to the terminal's width\n"
        "  -h, --help          print this help\n\n"
        "Exit status: 0; 1 when the policy is wrong or cannot be read; 64 when the command line\n"
        "is wrong.\n\n"
        "Examples:\n"
        "  cudapolicy show\n"
        "  cudapolicy show -p policy.ini\n"
        "  cudapolicy show --settings --wide\n"
        "  cudapolicy show --devices --json | jq '.devices[].mem_sync_domains'\n",
    .main = show_main,
};

enum {
    OPTION_DEVICES = COMMAND_OPTION_LONG,
    OPTION_SETTINGS,
    OPTION_ENTRY_POINTS,
    OPTION_EXCEPTIONS,
    OPTION_REASONS,
    OPTION_POLICIES,
    OPTION_VARIABLES,
    OPTION_JSON,
};

/* What the devices are shown with. */
struct device_options {
    const struct policy *policy; /* NULL: none */
    unsigned fake_domains;
};

static void print_device_table(const struct devices *devices, bool wide)
{
    struct table *table = table_new();

    table_column(table, "device", TABLE_RIGHT, false);
    table_column(table, "name", TABLE_LEFT, true);
    table_column(table, "capability", TABLE_LEFT, false);
    table_column(table, "SMs", TABLE_RIGHT, false);
    table_column(table, "domains", TABLE_RIGHT, false);
    table_column(table, "clusters", TABLE_LEFT, false);
    table_column(table, "PCI", TABLE_LEFT, false);
    table_column(table, "UUID", TABLE_LEFT, true);
    for (size_t i = 0; i < devices->count; i++) {
        const struct device *device = &devices->list[i];

        table_cell(table, "%zu", i);
        table_cell(table, "%s", device->name);
        table_cell(table, "%d.%d", device->compute_major, device->compute_minor);
        table_cell(table, "%d", device->multiprocessors);
        table_cell(table, "%d", device->mem_sync_domains);
        /* 8 is what CUDA promises wherever there are clusters; more depends on the kernel. */
        table_cell(table, "%s", device->clusters ? "up to 8" : "no");
        table_cell(table, "%s", device->pci);
        table_cell(table, "%s", device->uuid);
    }
    table_print(table, stdout, wide, "");
    table_free(table);
}

static void print_devices(const struct device_options *options, bool wide)
{
    struct devices devices;

    devices_read(&devices);
    printf("cudapolicy %s\n", CUDAPOLICY_VERSION);
    library_print();
    if (devices.driver_version != 0) {
        printf("driver for CUDA %d.%d\n", devices.driver_version / 1000,
               devices.driver_version % 1000 / 10);
    }
    if (devices.absent != NULL) {
        printf("%s\n", devices.absent);
    } else {
        print_device_table(&devices, wide);
        puts(
            "domains: physical memory-synchronization domains. clusters: blocks in a thread block\n"
            "cluster on any kernel; kernels may ask for the permission to use larger ones.");
        partitions_print(devices.count, options->policy, options->fake_domains, wide);
    }
    devices_release(&devices);
}

static json_t *devices_json(const struct device_options *options)
{
    struct devices devices;
    json_t *list = json_array(), *document;

    devices_read(&devices);
    for (size_t i = 0; i < devices.count; i++) {
        const struct device *device = &devices.list[i];

        json_array_append_new(
            list,
            json_pack("{s:I, s:o, s:s, s:s, s:[i,i], s:i, s:i, s:b}", "index", (json_int_t)i,
                      "name", json_output_string(device->name), "uuid", device->uuid, "pci",
                      device->pci, "compute_capability", device->compute_major,
                      device->compute_minor, "multiprocessors", device->multiprocessors,
                      "mem_sync_domains", device->mem_sync_domains, "clusters", device->clusters));
    }
    partitions_json(list, options->policy, options->fake_domains);
    document = json_pack("{s:s, s:o, s:i, s:o, s:o}", "version", CUDAPOLICY_VERSION, "library",
                         library_json(), "driver_version", devices.driver_version, "absent",
                         devices.absent != NULL ? json_output_string(devices.absent) : json_null(),
                         "devices", list);
    devices_release(&devices);
    return document;
}

static const char *role_name(enum policy_role role)
{
    switch (role) {
    case POLICY_ROLE_PROPERTY:
        return "property";
    case POLICY_ROLE_SELECTOR:
        return "selector";
    case POLICY_ROLE_SETTING:
        return "setting";
    case POLICY_ROLE_MODIFIER:
        return "modifier";
    }
    return "?";
}

/* What holds where a rule with this setting has no when_set; NULL: when_set says nothing of it. */
static const char *default_when_set(const struct policy_key_entry *key)
{
    if (key->role != POLICY_ROLE_SETTING || key->kind == POLICY_VALUE_REMOVAL ||
        key->kind == POLICY_VALUE_PARTITION_NAME || key->kind == POLICY_VALUE_LOCALITY_DOMAIN) {
        return NULL;
    }
    return policy_vocabulary_word_text(POLICY_WORDS_WHEN_SET, (int)key->when_set);
}

static json_t *words_json(enum policy_word_list list)
{
    size_t count;
    const struct policy_word_entry *words = policy_vocabulary_words(&count);
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        if (list != POLICY_WORDS_NONE && words[i].list == list) {
            json_array_append_new(
                array, json_pack("{s:s, s:s}", "word", words[i].text, "help", words[i].help));
        }
    }
    return array;
}

static json_t *sections_json(void)
{
    size_t count;
    const struct policy_section_entry *sections = policy_vocabulary_sections(&count);
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array,
                              json_pack("{s:s, s:b, s:s}", "section", sections[i].text, "named",
                                        sections[i].named, "help", sections[i].help));
    }
    return array;
}

static json_t *settings_json(void)
{
    size_t section_count, key_count;
    const struct policy_section_entry *sections = policy_vocabulary_sections(&section_count);
    const struct policy_key_entry *keys = policy_vocabulary(&key_count);
    json_t *array = json_array();

    for (size_t s = 0; s < section_count; s++) {
        for (size_t k = 0; k < key_count; k++) {
            if ((keys[k].sections & 1U << sections[s].section) != 0) {
                json_array_append_new(
                    array, json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:s?, s:s, s:o}", "section",
                                     sections[s].text, "key", keys[k].text, "role",
                                     role_name(keys[k].role), "values", keys[k].values,
                                     "repeatable", keys[k].repeatable, "unset",
                                     (keys[k].unset_sections & 1U << sections[s].section) != 0,
                                     "when_set", default_when_set(&keys[k]), "help", keys[k].help,
                                     "words", words_json(keys[k].words)));
            }
        }
    }
    return array;
}

static json_t *quantities_json(void)
{
    size_t count;
    const struct policy_quantity_entry *quantities = policy_vocabulary_quantities(&count);
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++) {
        json_array_append_new(array, json_pack("{s:s, s:s}", "quantity", quantities[i].text,
                                               "meaning", quantities[i].help));
    }
    return array;
}

/* The lines of [expect] have no keys. */
static void print_quantities(bool wide)
{
    size_t count;
    const struct policy_quantity_entry *quantities = policy_vocabulary_quantities(&count);
    struct table *table = table_new();

    puts("  rule|kernel|stream NAME: COUNT =|!=|<|<=|>|>= N, ...");
    table_column(table, "count", TABLE_LEFT, false);
    table_column(table, "meaning", TABLE_LEFT, false);
    for (size_t i = 0; i < count; i++) {
        table_cell(table, "%s", quantities[i].text);
        table_cell(table, "%s", quantities[i].help);
    }
    table_print(table, stdout, wide, "  ");
    table_free(table);
}

static void print_section(const struct policy_section_entry *section, bool wide)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);
    struct table *table = table_new();

    printf("[%s%s]  %s\n", section->text, section->named ? " NAME" : "", section->help);
    table_column(table, "key", TABLE_LEFT, false);
    table_column(table, "is a", TABLE_LEFT, false);
    table_column(table, "value", TABLE_LEFT, false);
    table_column(table, "when_set", TABLE_LEFT, false);
    table_column(table, "meaning", TABLE_LEFT, false);
    for (size_t i = 0; i < count; i++) {
        if ((keys[i].sections & 1U << section->section) == 0) {
            continue;
        }
        table_cell(table, "%s", keys[i].text);
        table_cell(table, "%s", role_name(keys[i].role));
        table_cell(table, "%s", keys[i].values[0] != '\0' ? keys[i].values : "-");
        table_cell(table, "%s",
                   default_when_set(&keys[i]) != NULL ? default_when_set(&keys[i]) : "-");
        table_cell(table, "%s", keys[i].help);
    }
    if (table_rows(table) > 0) {
        table_print(table, stdout, wide, "  ");
    } else if (section->section == POLICY_SECTION_EXPECT) {
        print_quantities(wide);
    } else if (section->section == POLICY_SECTION_ENV) {
        puts("  NAME = VALUE; in [env replace] whatever the user set");
    } /* else one that only divides the file */
    table_free(table);
}

static void print_settings(bool wide)
{
    size_t count;
    const struct policy_section_entry *sections = policy_vocabulary_sections(&count);

    for (size_t i = 0; i < count; i++) {
        print_section(&sections[i], wide);
        putchar('\n');
    }
    puts(
        "Every setting also takes 'leave' (the search ends, the program's own value stays);\n"
        "settings of kernels take 'unset' (the program's own value is taken away). A key that may\n"
        "be repeated matches when one of its values does; different keys must all match. "
        "when_set:\n"
        "what holds where the program set the attribute itself, unless the rule says another.");
}

static json_t *reasons_json(void)
{
    json_t *outcomes = json_array(), *reasons = json_array();

    for (unsigned i = REPORT_OUTCOME_NONE + 1; i < REPORT_OUTCOME_COUNT; i++) {
        json_array_append_new(outcomes, json_pack("{s:s, s:s}", "outcome", report_outcome_text(i),
                                                  "meaning", report_outcome_meaning(i)));
    }
    for (unsigned i = REPORT_REASON_NONE + 1; i < REPORT_REASON_COUNT; i++) {
        json_array_append_new(reasons, json_pack("{s:s, s:s}", "reason", report_reason_text(i),
                                                 "meaning", report_reason_meaning(i)));
    }
    return json_pack("{s:o, s:o}", "outcomes", outcomes, "reasons", reasons);
}

static void print_reasons(void)
{
    puts("outcomes of a setting:");
    for (unsigned i = REPORT_OUTCOME_NONE + 1; i < REPORT_OUTCOME_COUNT; i++) {
        printf("  %s\n      %s\n", report_outcome_text(i), report_outcome_meaning(i));
    }
    puts("reasons for a refusal, or for keeping the program's own value:");
    for (unsigned i = REPORT_REASON_NONE + 1; i < REPORT_REASON_COUNT; i++) {
        printf("  %s\n      %s\n", report_reason_text(i), report_reason_meaning(i));
    }
}

static void show_text(int what, const struct device_options *options, bool wide)
{
    switch (what) {
    case OPTION_SETTINGS:
        print_settings(wide);
        break;
    case OPTION_ENTRY_POINTS:
        entry_points_print(wide);
        break;
    case OPTION_EXCEPTIONS:
        exceptions_print(wide);
        break;
    case OPTION_REASONS:
        print_reasons();
        break;
    case OPTION_POLICIES:
        policies_print(wide);
        break;
    case OPTION_VARIABLES:
        variables_print(wide);
        break;
    default:
        print_devices(options, wide);
    }
}

static json_t *show_json(int what, const struct device_options *options)
{
    switch (what) {
    case OPTION_SETTINGS:
        return json_pack("{s:o, s:o, s:o}", "sections", sections_json(), "settings",
                         settings_json(), "quantities", quantities_json());
    case OPTION_ENTRY_POINTS:
        return json_pack("{s:o}", "entry_points", entry_points_json());
    case OPTION_EXCEPTIONS:
        return json_pack("{s:o}", "exceptions", exceptions_json());
    case OPTION_REASONS:
        return reasons_json();
    case OPTION_POLICIES:
        return json_pack("{s:o}", "policies", policies_json());
    case OPTION_VARIABLES:
        return json_pack("{s:o}", "variables", variables_json());
    default:
        return devices_json(options);
    }
}

/* Shows what was asked for; policy: a file, or NULL. */
static int show(int what, const char *policy, bool json, bool wide)
{
    const char *variable = getenv("CUDAPOLICY_FAKE_LOCALITY_DOMAINS");
    int fake_domains = place_fake_domains_parse(variable);
    struct device_options options = {.fake_domains = (unsigned)fake_domains};
    struct policy *loaded = NULL;

    if (fake_domains < 0 && (what == 0 || what == OPTION_DEVICES)) {
        command_error(
            "CUDAPOLICY_FAKE_LOCALITY_DOMAINS=%s: it is a number of domains, from 2 to %d",
            variable, (int)PLACE_DOMAIN_LIMIT);
        return COMMAND_FAILURE;
    }
    if (policy != NULL) {
        loaded = site_input_around(policy_input_require(policy, false, NULL), false);
        if (loaded == NULL) {
            return COMMAND_FAILURE;
        }
        options.policy = loaded;
    }
    if (json) {
        json_output_print(show_json(what, &options), stdout);
    } else {
        show_text(what, &options, wide);
    }
    policy_free(loaded);
    return command_finish(COMMAND_SUCCESS);
}

static int show_main(const struct command *command, int argc, char **argv)
{
    static const struct option long_options[] = {
        {"policy", required_argument, NULL, 'p'},
        {"devices", no_argument, NULL, OPTION_DEVICES},
        {"settings", no_argument, NULL, OPTION_SETTINGS},
        {"entry-points", no_argument, NULL, OPTION_ENTRY_POINTS},
        {"exceptions", no_argument, NULL, OPTION_EXCEPTIONS},
        {"reasons", no_argument, NULL, OPTION_REASONS},
        {"policies", no_argument, NULL, OPTION_POLICIES},
        {"variables", no_argument, NULL, OPTION_VARIABLES},
        {"json", no_argument, NULL, OPTION_JSON},
        {"wide", no_argument, NULL, 'w'},
        {"help", no_argument, NULL, 'h'},
        {0},
    };
    const char *policy = NULL;
    bool json = false, wide = false;
    int option, what = 0;

    while ((option = command_option(command, argc, argv, ":p:wh", long_options)) != -1) {
        switch (option) {
        case 'p':
            policy = optarg;
            break;
        case OPTION_JSON:
            json = true;
            break;
        case 'w':
            wide = true;
            break;
        case 'h':
            return command_help(command);
        case '?':
            return COMMAND_USAGE;
        default:
            if (what != 0 && what != option) {
                return command_usage_error(command, "only one list can be shown at a time");
            }
            what = option;
        }
    }
    if (optind != argc) {
        return command_usage_error(command, "'%s' is not expected here", argv[optind]);
    }
    if (policy != NULL && what != 0 && what != OPTION_DEVICES) {
        return command_usage_error(command, "--policy goes with the devices only");
    }
    return show(what, policy, json, wide);
}
