/* SPDX-License-Identifier: Apache-2.0 */

/* Questions to a policy, and its values as text. */

#include "policy/policy.h"

#include <stdio.h>
#include <string.h>

#include "policy/site.h"
#include "policy/vocabulary.h"

enum policy_group policy_setting_group(enum policy_setting setting)
{
    switch (setting) {
    case POLICY_SETTING_MEM_SYNC_DOMAIN:
    case POLICY_SETTING_MEM_SYNC_DOMAIN_MAP:
        return POLICY_GROUP_MEM_SYNC;
    case POLICY_SETTING_CLUSTER_DIM:
    case POLICY_SETTING_PREFERRED_CLUSTER_DIM:
    case POLICY_SETTING_CLUSTER_SCHEDULING:
        return POLICY_GROUP_CLUSTER;
    case POLICY_SETTING_PRIORITY:
        return POLICY_GROUP_PRIORITY;
    case POLICY_SETTING_SHARED_MEMORY_CARVEOUT:
        return POLICY_GROUP_SHARED_MEMORY_CARVEOUT;
    case POLICY_SETTING_NVLINK_UTIL_CENTRIC:
        return POLICY_GROUP_NVLINK_UTIL_CENTRIC;
    case POLICY_SETTING_PROGRAMMATIC_SERIALIZATION:
        return POLICY_GROUP_PROGRAMMATIC_SERIALIZATION;
    case POLICY_SETTING_PARTITION:
        return POLICY_GROUP_PARTITION;
    case POLICY_SETTING_COUNT:
        break;
    }
    return POLICY_GROUP_COUNT;
}

/* The first key of a setting in the vocabulary: mem_sync_domain_map comes before physical_domain.
 */
static const struct policy_key_entry *setting_entry(enum policy_setting setting)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);

    for (size_t i = 0; i < count; i++) {
        if (keys[i].role == POLICY_ROLE_SETTING && keys[i].setting == setting) {
            return &keys[i];
        }
    }
    return NULL;
}

const char *policy_setting_key(enum policy_setting setting)
{
    const struct policy_key_entry *key = setting_entry(setting);

    return key != NULL ? key->text : "?";
}

static void cluster_text(const union policy_value *value, char *text, size_t size)
{
    unsigned x = value->cluster_dim.x, y = value->cluster_dim.y, z = value->cluster_dim.z;

    if (z != 1) {
        snprintf(text, size, "%u,%u,%u", x, y, z);
    } else if (y != 1) {
        snprintf(text, size, "%u,%u", x, y);
    } else {
        snprintf(text, size, "%u", x);
    }
}

static void set_value_text(enum policy_setting setting, const union policy_value *value, char *text,
                           size_t size)
{
    const struct policy_key_entry *key = setting_entry(setting);
    const char *word = NULL;

    switch (setting) {
    case POLICY_SETTING_MEM_SYNC_DOMAIN:
        word = policy_vocabulary_word_text(key->words, (int)value->mem_sync_domain);
        break;
    case POLICY_SETTING_CLUSTER_SCHEDULING:
        word = policy_vocabulary_word_text(key->words, (int)value->cluster_scheduling);
        break;
    case POLICY_SETTING_NVLINK_UTIL_CENTRIC:
        word = policy_vocabulary_word_text(key->words, value->nvlink_util_centric);
        break;
    case POLICY_SETTING_SHARED_MEMORY_CARVEOUT:
        word = policy_vocabulary_word_text(key->words, value->shared_memory_carveout);
        if (word == NULL) {
            snprintf(text, size, "%d%%", (int)value->shared_memory_carveout);
            return;
        }
        break;
    case POLICY_SETTING_MEM_SYNC_DOMAIN_MAP:
        snprintf(text, size, "%u %u", value->mem_sync_domain_map.default_domain,
                 value->mem_sync_domain_map.remote_domain);
        return;
    case POLICY_SETTING_CLUSTER_DIM:
    case POLICY_SETTING_PREFERRED_CLUSTER_DIM:
        cluster_text(value, text, size);
        return;
    case POLICY_SETTING_PRIORITY:
        snprintf(text, size, "%d", (int)value->priority);
        return;
    default:
        break;
    }
    snprintf(text, size, "%s", word != NULL ? word : "?");
}

const char *policy_setting_text(enum policy_setting setting,
                                const struct policy_setting_value *value, char *text, size_t size)
{
    switch (value->action) {
    case POLICY_ACTION_SET:
        if (setting == POLICY_SETTING_PARTITION) {
            snprintf(text, size, "%s", value->partition_name);
        } else {
            set_value_text(setting, &value->value, text, size);
        }
        break;
    case POLICY_ACTION_UNSET:
        snprintf(text, size, "unset");
        break;
    case POLICY_ACTION_LEAVE:
        snprintf(text, size, "leave");
        break;
    case POLICY_ACTION_ABSENT:
        snprintf(text, size, "%s", "");
        break;
    }
    return text;
}

/* The name of an unnamed partition is such a line without its blanks, which no name can be: names
 * have no =. */
const char *policy_setting_line(enum policy_setting setting,
                                const struct policy_setting_value *value, char *text, size_t size)
{
    const char *equals = setting == POLICY_SETTING_PARTITION && value->action == POLICY_ACTION_SET
                             ? strchr(value->partition_name, '=')
                             : NULL;
    char value_text[128];

    if (equals != NULL) {
        snprintf(text, size, "%.*s = %s", (int)(equals - value->partition_name),
                 value->partition_name, equals + 1);
    } else {
        snprintf(text, size, "%s = %s", policy_setting_key(setting),
                 policy_setting_text(setting, value, value_text, sizeof value_text));
    }
    return text;
}

const char *policy_partition_line(const struct policy_partition *partition, char *text, size_t size)
{
    size_t count;
    const struct policy_key_entry *keys = policy_vocabulary(&count);
    const char *key = keys[POLICY_KEY_SM_COUNT].text;

    switch (partition->kind) {
    case POLICY_PARTITION_SM_COUNT:
        snprintf(text, size, "%s = %u", key, (unsigned)partition->number);
        break;
    case POLICY_PARTITION_SM_PERCENT:
        snprintf(text, size, "%s = %u%%", key, (unsigned)partition->number);
        break;
    case POLICY_PARTITION_SM_REST:
        snprintf(text, size, "%s = %s", key,
                 policy_vocabulary_word_text(POLICY_WORDS_SM_COUNT, POLICY_PARTITION_SM_REST));
        break;
    case POLICY_PARTITION_LOCALITY_DOMAIN:
        snprintf(text, size, "%s = %u", keys[POLICY_KEY_DOMAIN_NUMBER].text,
                 (unsigned)partition->number);
        break;
    }
    return text;
}

bool policy_ranges_hold(const struct policy_ranges *ranges, int64_t value)
{
    for (size_t i = 0; i < ranges->count; i++) {
        if (value >= ranges->ranges[i].low && value <= ranges->ranges[i].high) {
            return true;
        }
    }
    return ranges->count == 0;
}

/* The words of the vocabulary are those that a file may use; off is for the environment only. */
static const char off[] = "off";

bool policy_mode_parse(const char *text, enum policy_mode *mode)
{
    const struct policy_word_entry *word = policy_vocabulary_word(POLICY_WORDS_MODE, text);

    if (word != NULL) {
        *mode = (enum policy_mode)word->value;
        return true;
    }
    if (strcmp(text, off) == 0) {
        *mode = POLICY_MODE_OFF;
        return true;
    }
    return false;
}

const char *policy_mode_name(enum policy_mode mode)
{
    const char *word = policy_vocabulary_word_text(POLICY_WORDS_MODE, (int)mode);

    return word != NULL ? word : off;
}

enum policy_mode policy_mode_lower(enum policy_mode left, enum policy_mode right)
{
    return left > right ? left : right;
}

_Static_assert(POLICY_MODE_ENFORCE < POLICY_MODE_OBSERVE && POLICY_MODE_OBSERVE < POLICY_MODE_OFF,
               "a lower mode has a larger number");

const char *policy_layer_name(enum policy_layer layer)
{
    static const char *const names[] = {
        [POLICY_LAYER_JOB] = "job",
        [POLICY_LAYER_LOCKED] = "site locked",
        [POLICY_LAYER_DEFAULTS] = "site defaults",
    };

    return layer < POLICY_LAYER_COUNT ? names[layer] : "?";
}

bool policy_layers_share_file(enum policy_layer left, enum policy_layer right)
{
    return (left == POLICY_LAYER_JOB) == (right == POLICY_LAYER_JOB);
}

const char *policy_layer_path(const struct policy *policy, enum policy_layer layer)
{
    return layer == POLICY_LAYER_JOB || policy->site == NULL ? policy->path : policy->site->path;
}
