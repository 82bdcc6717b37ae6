/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CUDAPOLICY_POLICY_PARSER_H
#define CUDAPOLICY_POLICY_PARSER_H

/* What the parts of the parser share. Internal to src/policy; not for the launch path. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "policy/arena.h"
#include "policy/line.h"
#include "policy/site.h"
#include "policy/vocabulary.h"

enum {
    POLICY_RULE_NAME_LIMIT = 100, /* bytes; of partitions too */
    /* Of what a line of [tune] says: short enough for its canonical form to be a line, too. */
    POLICY_VARIATION_TEXT_LIMIT = 16 * 1024,
};

/* A policy as its user sees it, and what has to be freed with it. */
struct policy_owned {
    struct policy policy; /* first: policy_free gets a pointer to it */
    struct policy_arena arena;
    struct policy_rule *rules;
    struct policy *parts[2]; /* that it was combined from, or NULL */
};

/* A selector `stream`, which has to name a stream rule. */
struct policy_reference {
    const char *name;
    struct policy_place place;
};

/* A setting `partition` or `locality_domain`: which partition it is can only be said at the end. */
struct policy_partition_reference {
    size_t rule;               /* index of the rule */
    const char *name;          /* NULL: locality_domain */
    uint32_t number;           /* the locality domain's */
    struct policy_place place; /* of the value */
};

/* A line of [tune]: of which rule or partition it speaks can only be said at the end. */
struct policy_variation_text {
    const char *text;
    struct policy_place place;
};

/* A line of [expect]: of which rule it speaks can only be said at the end. */
struct policy_expectation_text {
    const char *text;
    struct policy_place place;
};

/* A rule or a partition while its section is read. */
struct policy_rule_builder {
    struct policy_rule rule;
    struct policy_partition partition;
    struct policy_place key_place[POLICY_KEY_COUNT]; /* of the first; line 0: key not given */
    enum policy_when_set when_set;
    size_t errors_before; /* with one of its own, the rule is not the one that was meant */
    bool name_is_good;
};

enum policy_parser_state {
    POLICY_PARSER_BEFORE_SECTIONS,
    POLICY_PARSER_IN_POLICY,
    POLICY_PARSER_IN_RULE,
    POLICY_PARSER_IN_PARTITION,
    POLICY_PARSER_IN_TUNE,
    POLICY_PARSER_IN_ENV,
    POLICY_PARSER_IN_EXPECT, /* whose lines are no keys with values */
    POLICY_PARSER_IN_SITE,
    POLICY_PARSER_IN_MARKER, /* [locked], [defaults]: they have no keys */
    POLICY_PARSER_SKIPPING,  /* a section that does not exist: its keys mean nothing */
};

struct policy_parser {
    bool of_site; /* the file is a site's */
    struct policy_diagnostics *diagnostics;
    size_t errors_before; /* of an earlier text: one list may take several */
    size_t warnings_before;
    struct policy_arena arena;
    bool out_of_memory;
    bool stopped; /* nothing that follows would make sense */

    /* The raw text, and the line of it that is being read. */
    const char *text;
    size_t length, offset;
    uint32_t line_number;
    struct policy_line line;

    /* The line as inih gets it, and how much of it has been handed over. */
    char *normalised;
    size_t normalised_capacity, normalised_length, normalised_given;

    /* The section. */
    enum policy_parser_state state;
    const struct policy_section_entry *section;
    char section_label[24]; /* its name for inih: a number, the same for no two sections */
    unsigned section_count;
    bool header_broken;       /* some section's could not be read, */
    bool first_header_broken; /* the first one's, which may have been [policy] */
    bool name_missing;        /* some rule's could not be read, or is not there */
    struct policy_place section_place;

    /* [policy] */
    struct policy_place policy_place; /* line 0: no such section yet */
    struct policy_place policy_key_place[POLICY_KEY_COUNT];
    int version;
    enum policy_mode mode;

    /* of a site's file */
    struct policy_site site;
    struct policy_place site_place; /* line 0: no [site] yet */
    struct policy_place marker_place[POLICY_LAYER_COUNT];
    enum policy_layer layer; /* of the rules and partitions that follow; job: before the markers */

    struct policy_rule_builder builder;
    struct policy_rule *rules;
    size_t rule_count, rule_capacity;

    const struct policy_reference *references;
    size_t reference_count;

    /* Both have room for POLICY_PARTITION_LIMIT once there is a partition. */
    struct policy_partition *partitions;     /* named ones in file order, then unnamed ones */
    struct policy_place *partition_requests; /* where each says what it asks for */
    size_t partition_count;
    const struct policy_partition_reference *partition_references;
    size_t partition_reference_count;

    struct policy_place tune_place; /* line 0: no [tune] yet */
    const struct policy_variation_text *variation_texts;
    size_t variation_text_count;
    struct policy_variation *variations;
    size_t variation_count;

    struct policy_place env_places[2]; /* [env], [env replace]; line 0: none yet */
    bool replaces;                     /* the one that is read */
    struct policy_variable *variables;
    size_t variable_count;

    struct policy_place expect_place; /* line 0: no [expect] yet */
    const struct policy_expectation_text *expectation_texts;
    size_t expectation_text_count;
    struct policy_expectation *expectations;
    size_t expectation_count;
};

/* parse.c: both report errors and leave the parser ready for the next line. */
void policy_parser_begin_section(struct policy_parser *parser);
void policy_parser_end_section(struct policy_parser *parser);

/* store.c: a key with its value, in the section that is being read. */
void policy_parser_store(struct policy_parser *parser, const char *key, const char *value);

/* site.c: the sections of a site's file. They report errors and set the state. */
void policy_parser_begin_site(struct policy_parser *parser);
void policy_parser_begin_marker(struct policy_parser *parser);

/* site.c: false, after an error, when the section that begins cannot stand in a file of this kind,
 * or not here. */
bool policy_parser_section_fits(struct policy_parser *parser);

/* site.c: a key of [site]. */
struct policy_value_text;
void policy_parser_store_site(struct policy_parser *parser, struct policy_value_text *value);

/* load.c: what a file that can be read has, to be freed; NULL after an error that is reported. */
char *policy_read_file(int file, size_t limit, size_t *length,
                       struct policy_diagnostics *diagnostics);

/* load.c: policy_load, for files that this function reads. */
typedef struct policy *policy_parse_function(const char *text, size_t length, const char *label,
                                             struct policy_diagnostics *diagnostics);
struct policy *policy_load_with(policy_parse_function *parse, const char *path,
                                struct policy_diagnostics *diagnostics);

/* load.c: reports "what: why". */
void policy_diagnose_errno(struct policy_diagnostics *diagnostics, const char *what, int error);

/* section.c: room for one more partition, NULL when there is none: reported at that place, or
 * out_of_memory set. request: where it says what it asks for. */
struct policy_partition *policy_parser_add_partition(struct policy_parser *parser,
                                                     struct policy_place place,
                                                     struct policy_place request);

/* check.c: what can be said of one rule by itself, when its section ends; no warning where there
 * was an error, of which it may be a mere consequence. */
void policy_check_rule(struct policy_rule_builder *builder, struct policy_diagnostics *diagnostics);

/* True for patterns, ORed, that match every name. */
bool policy_matches_any_name(const struct policy_globs *names);

/* check_partition.c: the same of one partition, and of a rule's partition. */
void policy_check_partition(const struct policy_rule_builder *builder,
                            struct policy_diagnostics *diagnostics);
void policy_check_rule_partition(const struct policy_rule_builder *builder,
                                 struct policy_diagnostics *diagnostics);

/* Whether the key is given; the place of the later of two keys: there a contradiction became one.
 */
bool policy_key_given(const struct policy_rule_builder *builder, enum policy_key key);
struct policy_place policy_later_place(const struct policy_rule_builder *builder,
                                       enum policy_key left, enum policy_key right);

/* relate.c: what can be said only of all rules together. */
void policy_check_rules(struct policy_parser *parser);

/* relate_partition.c: finds the partition of each rule that has one, adds the unnamed ones, and
 * says what is wrong with them together. Before policy_check_rules. */
void policy_relate_partitions(struct policy_parser *parser);

/* tune.c: reads what [tune] varies and says what is wrong with it. After the other two. */
void policy_relate_tune(struct policy_parser *parser);

/* environment.c: the header of [env], a line in it, and warnings about all of them. */
void policy_parser_begin_env(struct policy_parser *parser);
void policy_parser_store_variable(struct policy_parser *parser, const char *name,
                                  const char *value);
void policy_check_variables(struct policy_parser *parser);

/* expect.c: the header of [expect], a line in it, and what the lines say. Names of rules can only
 * be found at the end. */
void policy_parser_begin_expect(struct policy_parser *parser);
void policy_parser_note_expectation(struct policy_parser *parser, const char *text);
void policy_relate_expectations(struct policy_parser *parser);

/* relate_device.c: what can be said of partitions that share a device. */
void policy_check_devices(const struct policy_parser *parser);

/* shadow.c: warnings about rules and settings that can never apply, since earlier rules take every
 * launch or stream that they match. */
void policy_check_shadows(const struct policy_rule *rules, size_t count,
                          struct policy_diagnostics *diagnostics);

/* shadow.c: the same of a combined policy: of the job's rules, by the site's locked ones. */
void policy_check_shadows_of_site(const struct policy_rule *rules, size_t count,
                                  struct policy_diagnostics *diagnostics);

/* cover.c: true only when all that the second pattern matches is also matched by the first; false
 * says nothing. is_name: patterns of kernel names in the form POLICY_NAME_FORM_NAME. Takes from
 * *steps, and answers false when they run out. */
bool policy_pattern_covers(const char *pattern, const char *covered, bool is_name, size_t *steps);

/* True for a pattern of stars alone, which matches everything. */
bool policy_glob_is_everything(const char *pattern);

#endif
