/* SPDX-License-Identifier: Apache-2.0 */

/* What is special in a site's file: its sections, and the executables that it leaves alone. */

#include "policy/site.h"

#include <string.h>

#include "policy/glob.h"
#include "policy/parser.h"
#include "policy/value.h"

/* ---- sections ------------------------------------------------------------------------------- */

static void refuse_name(struct policy_parser *parser)
{
    if (parser->line.name.length != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->line.name.place,
                        "[%s] takes no name", parser->section->text);
    }
}

/* False for the second section of its kind. */
static bool is_first(struct policy_parser *parser, struct policy_place *place)
{
    if (place->line != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                        "second [%s]; the first is in line %u", parser->section->text,
                        (unsigned)place->line);
        return false;
    }
    *place = parser->section_place;
    return true;
}

void policy_parser_begin_site(struct policy_parser *parser)
{
    refuse_name(parser);
    is_first(parser, &parser->site_place);
    parser->state = POLICY_PARSER_IN_SITE;
}

/* The markers stand in the order in which rules are read, so that a reader sees it. */
void policy_parser_begin_marker(struct policy_parser *parser)
{
    enum policy_layer layer = parser->section->section == POLICY_SECTION_LOCKED
                                  ? POLICY_LAYER_LOCKED
                                  : POLICY_LAYER_DEFAULTS;
    struct policy_place defaults = parser->marker_place[POLICY_LAYER_DEFAULTS];

    refuse_name(parser);
    if (is_first(parser, &parser->marker_place[layer]) && layer == POLICY_LAYER_LOCKED &&
        defaults.line != 0) {
        policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                        "[locked] has to stand before [defaults], which is in line %u: its rules "
                        "are read first",
                        (unsigned)defaults.line);
    }
    parser->layer = layer;
    parser->state = POLICY_PARSER_IN_MARKER;
}

bool policy_parser_section_fits(struct policy_parser *parser)
{
    const struct policy_section_entry *section = parser->section;

    switch (section->section) {
    case POLICY_SECTION_POLICY:
        return true;
    case POLICY_SECTION_SITE:
    case POLICY_SECTION_LOCKED:
    case POLICY_SECTION_DEFAULTS:
        if (!parser->of_site) {
            policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                            "[%s] belongs into the site's file, not into the policy of a job",
                            section->text);
        }
        return parser->of_site;
    case POLICY_SECTION_PARTITION:
    case POLICY_SECTION_STREAM:
    case POLICY_SECTION_KERNEL:
        if (parser->of_site && parser->layer == POLICY_LAYER_JOB) {
            policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                            "[%s] stands before [locked] and [defaults]: one of them has to say "
                            "whether it is read before the job's policy or after it",
                            section->text);
            return false;
        }
        return true;
    default:
        if (parser->of_site) {
            policy_diagnose(parser->diagnostics, POLICY_ERROR, parser->section_place,
                            "[%s] belongs into the policy of a job, not into the site's file",
                            section->text);
        }
        return !parser->of_site;
    }
}

/* ---- keys ----------------------------------------------------------------------------------- */

static void store_mode(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_site *site = &parser->site;
    int word;

    if (!policy_value_word(value, &word)) {
        return;
    }
    if (value->key->key == POLICY_KEY_MODE_CEILING) {
        site->mode_ceiling = (enum policy_mode)word;
        site->mode_ceiling_place = value->place;
    } else {
        site->mode = (enum policy_mode)word;
        site->mode_given = true;
        site->mode_place = value->place;
    }
}

/* What may stand after % is known to those who expand it; here only what no path can be. */
static void store_reports(struct policy_parser *parser, struct policy_value_text *value)
{
    if (value->text[0] != '/') {
        policy_value_error(value, 0, "it is an absolute path: programs run in many folders");
        return;
    }
    parser->site.reports = value->text;
    parser->site.reports_place = value->place;
}

static void store_exclude(struct policy_parser *parser, struct policy_value_text *value)
{
    struct policy_site *site = &parser->site;
    size_t column = 0, count = site->exclude.count;
    const char *error = glob_error(value->text, &column), *slash = strchr(value->text, '/');
    struct policy_place *places =
        policy_arena_grow(&parser->arena, site->exclude_places, count, sizeof *places);

    if (error != NULL) {
        policy_value_error(value, column, "%s", error);
    } else if (slash != NULL) {
        policy_value_error(value, (size_t)(slash - value->text),
                           "it is compared with the base name of the executable, without folders");
    }
    if (places == NULL) {
        value->out_of_memory = true;
        return;
    }
    places[count] = value->place;
    site->exclude_places = places;
    policy_value_text(value, &site->exclude);
}

void policy_parser_store_site(struct policy_parser *parser, struct policy_value_text *value)
{
    int word;

    switch (value->key->key) {
    case POLICY_KEY_REPORTS:
        store_reports(parser, value);
        break;
    case POLICY_KEY_EXCLUDE:
        store_exclude(parser, value);
        break;
    case POLICY_KEY_EXCLUDE_DEFAULTS:
        if (policy_value_word(value, &word)) {
            parser->site.exclude_defaults = word != 0;
            parser->site.exclude_defaults_place = value->place;
        }
        break;
    default:
        store_mode(parser, value);
        break;
    }
}

/* ---- executables that are left alone -------------------------------------------------------- */

/* Programs that run or look at other programs, and whose own use of CUDA, if any, is not the job's:
 * shells, launchers, debuggers and profilers, compilers, tools. */
static const char *const default_excludes[] = {
    "sh",
    "bash",
    "rbash",
    "dash",
    "ash",
    "busybox",
    "zsh",
    "ksh*",
    "mksh",
    "csh",
    "tcsh",
    "fish",
    "pwsh",
    "env",
    "sudo",
    "su",
    "ssh",
    "sshd",
    "scp",
    "sftp",
    "rsync",
    "tmux*",
    "screen",
    "srun",
    "sbatch",
    "salloc",
    "sattach",
    "scontrol",
    "squeue",
    "slurmstepd",
    "mpirun",
    "mpiexec*",
    "orterun",
    "orted",
    "prterun",
    "prted",
    "hydra_*",
    "make",
    "gmake",
    "ninja",
    "cmake",
    "ctest",
    "meson",
    "git",
    "gcc*",
    "g++*",
    "clang*",
    "nvcc",
    "cicc",
    "ptxas",
    "fatbinary",
    "nvlink",
    "gdb",
    "cuda-gdb*",
    "lldb*",
    "strace",
    "ltrace",
    "perf",
    "valgrind",
    "nsys*",
    "ncu",
    "ncu-ui",
    "compute-sanitizer",
    "nvidia-smi",
    "nvidia-settings",
    "nvidia-persistenced",
    "nvidia-cuda-mps-*",
    "dcgmi",
    "nv-hostengine",
    "nvtop",
    "nvitop",
    "gpustat",
    "ldd",
    "ls",
    "cat",
    "cp",
    "mv",
    "rm",
    "find",
    "grep",
    "sed",
    "awk",
    "gawk",
    "mawk",
    "tar",
    "gzip",
    "xz",
    "zstd",
    "top",
    "htop",
    "ps",
    "sleep",
    "timeout",
    "numactl",
    "taskset",
    "hwloc-*",
    "lstopo*",
    "cudapolicy",
};

const char *const *policy_site_default_excludes(size_t *count)
{
    *count = sizeof default_excludes / sizeof default_excludes[0];
    return default_excludes;
}

const char *policy_site_excludes(const struct policy_site *site, const char *executable,
                                 struct policy_place *place)
{
    size_t count;
    const char *const *patterns = policy_site_default_excludes(&count);

    for (size_t i = 0; i < site->exclude.count; i++) {
        if (glob_matches(site->exclude.patterns[i], executable)) {
            if (place != NULL) {
                *place = site->exclude_places[i];
            }
            return site->exclude.patterns[i];
        }
    }
    for (size_t i = 0; site->exclude_defaults && i < count; i++) {
        if (glob_matches(patterns[i], executable)) {
            if (place != NULL) {
                *place = (struct policy_place){0};
            }
            return patterns[i];
        }
    }
    return NULL;
}

bool policy_site_asks(const struct policy *site)
{
    return site->rule_count != 0 || site->site->reports != NULL;
}
