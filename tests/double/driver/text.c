/* SPDX-License-Identifier: Apache-2.0 */
/* How arguments look in the record. Handles appear as ordinals, so that two runs can be compared.
 */
#include "driver.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

__attribute__((format(printf, 2, 0))) static void text_add_list(struct text *text,
                                                                const char *format, va_list list)
{
    va_list again;
    va_copy(again, list);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0)
        abort();
    size_t wanted = text->length + (size_t)length + 1;
    if (wanted > text->capacity) {
        size_t capacity = 2 * wanted;
        char *data = realloc(text->data, capacity);
        if (data == NULL)
            abort();
        text->data = data;
        text->capacity = capacity;
    }
    vsnprintf(text->data + text->length, (size_t)length + 1, format, list);
    text->length += (size_t)length;
}

void text_add(struct text *text, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    text_add_list(text, format, list);
    va_end(list);
}

static const char *const attribute_names[] = {
    [0] = "IGNORE",
    [1] = "ACCESS_POLICY_WINDOW",
    [2] = "COOPERATIVE",
    [3] = "SYNCHRONIZATION_POLICY",
    [4] = "CLUSTER_DIMENSION",
    [5] = "CLUSTER_SCHEDULING_POLICY_PREFERENCE",
    [6] = "PROGRAMMATIC_STREAM_SERIALIZATION",
    [7] = "PROGRAMMATIC_EVENT",
    [8] = "PRIORITY",
    [9] = "MEM_SYNC_DOMAIN_MAP",
    [10] = "MEM_SYNC_DOMAIN",
    [11] = "PREFERRED_CLUSTER_DIMENSION",
    [12] = "LAUNCH_COMPLETION_EVENT",
    [13] = "DEVICE_UPDATABLE_KERNEL_NODE",
    [14] = "PREFERRED_SHARED_MEMORY_CARVEOUT",
    [16] = "NVLINK_UTIL_CENTRIC_SCHEDULING",
    [17] = "PORTABLE_CLUSTER_SIZE_MODE",
    [18] = "SHARED_MEMORY_MODE",
};

#define ATTRIBUTE_NAMES (sizeof(attribute_names) / sizeof(attribute_names[0]))

void text_attribute(struct text *text, unsigned int id, const CUlaunchAttributeValue *value)
{
    if (id < ATTRIBUTE_NAMES && attribute_names[id] != NULL)
        text_add(text, "%s:", attribute_names[id]);
    else
        text_add(text, "%u:", id);
    const unsigned int *words = (const unsigned int *)(const void *)value->pad;
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION:
        text_add(text, "%u/%u/%u", words[0], words[1], words[2]);
        break;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        text_add(text, "%u/%u", value->memSyncDomainMap.default_, value->memSyncDomainMap.remote);
        break;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        if (object_is(OBJECT_EVENT, value->programmaticEvent.event))
            text_add(text, "event#%u", value->programmaticEvent.event->object.ordinal);
        else
            text_add(text, "invalid");
        break;
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        text_add(text, "%zu", value->accessPolicyWindow.num_bytes);
        break;
    default:
        text_add(text, "%d", value->priority);
    }
}

static void text_attributes(struct text *text, const CUlaunchAttribute *list, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        if (i != 0)
            text_add(text, ",");
        text_attribute(text, (unsigned int)list[i].id, &list[i].value);
    }
    if (count == 0)
        text_add(text, "none");
}

void call_add(struct call *call, const char *format, ...)
{
    if (call->record == NULL)
        return;
    text_add(&call->details, " ");
    va_list list;
    va_start(list, format);
    text_add_list(&call->details, format, list);
    va_end(list);
}

const char *stream_name(CUstream stream, char *text, size_t size)
{
    if (stream == NULL)
        snprintf(text, size, "invalid");
    else if (stream->kind == STREAM_LEGACY)
        snprintf(text, size, "legacy");
    else if (stream->kind == STREAM_PER_THREAD)
        snprintf(text, size, "per_thread");
    else
        snprintf(text, size, "stream#%u", stream->object.ordinal);
    return text;
}

void call_stream(struct call *call, CUstream handle, CUstream stream)
{
    if (call->record == NULL)
        return;
    char name[32];
    call->record->stream = handle;
    call->record->capturing = stream != NULL && stream->capture != NULL;
    call->record->stream_name = strdup(stream_name(stream, name, sizeof(name)));
    text_add(&call->details, " stream=%s", name);
}

void call_object(struct call *call, const char *key, enum object_kind kind, const void *handle)
{
    if (call->record == NULL)
        return;
    if (handle == NULL)
        text_add(&call->details, " %s=null", key);
    else if (object_is(kind, handle))
        text_add(&call->details, " %s=%s#%u", key, object_kind_name(kind),
                 ((const struct object *)handle)->ordinal);
    else
        text_add(&call->details, " %s=invalid", key);
}

void call_function(struct call *call, const void *handle)
{
    static const char *const names[] = {"invalid", "function", "kernel"};
    if (call->record == NULL)
        return;
    struct launchable what;
    call->record->function = handle;
    if (launchable_of((CUfunction)(uintptr_t)handle, &what)) {
        call->record->handle =
            what.kernel != NULL ? RECORDING_HANDLE_KERNEL : RECORDING_HANDLE_FUNCTION;
        call->record->kernel = strdup(what.code->name);
        text_add(&call->details, " kernel=%s", what.code->name);
    }
    text_add(&call->details, " handle=%s", names[call->record->handle]);
}

/* Argument bytes are shown as their length and a hash (FNV-1a), enough to see that they arrived. */
static uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *bytes = data;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

#define HASH_START 14695981039346656037u

static void text_parameters(struct text *text, const struct launch *launch)
{
    text_add(text, "kernelParams");
    const struct kernel_code *code = launch->what.code;
    if (code == NULL || code->parameter_count < 0)
        return;
    uint64_t hash = HASH_START;
    size_t size = 0;
    for (int i = 0; i < code->parameter_count; i++) {
        hash = hash_bytes(hash, launch->parameters[i], code->parameter_size[i]);
        size += code->parameter_size[i];
    }
    text_add(text, "(%zu:%016llx)", size, (unsigned long long)hash);
}

static void text_extra(struct text *text, const struct launch *launch)
{
    const void *buffer = NULL;
    size_t size = 0;
    for (void **at = launch->extra; at[0] != CU_LAUNCH_PARAM_END; at += 2) {
        if (at[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
            buffer = at[1];
        else if (at[0] == CU_LAUNCH_PARAM_BUFFER_SIZE)
            size = *(const size_t *)at[1];
        else
            break;
    }
    text_add(text, "extra(%zu:%016llx)", size,
             (unsigned long long)hash_bytes(HASH_START, buffer, buffer == NULL ? 0 : size));
}

static void call_arguments(struct call *call, const struct launch *launch)
{
    struct text *text = &call->details;
    int kind = (launch->parameters != NULL ? 1 : 0) + (launch->extra != NULL ? 2 : 0);
    call->record->arguments = kind;
    text_add(text, " arguments=");
    if (kind == RECORDING_ARGUMENTS_NONE)
        text_add(text, "none");
    if (launch->parameters != NULL)
        text_parameters(text, launch);
    if (kind == RECORDING_ARGUMENTS_BOTH)
        text_add(text, "+");
    if (launch->extra != NULL)
        text_extra(text, launch);
}

void call_launch(struct call *call, const struct launch *launch)
{
    struct recording_call *record = call->record;
    if (record == NULL)
        return;
    call_function(call, launch->handle);
    call_stream(call, launch->stream_handle, launch->stream);
    if (launch->stream != NULL)
        call_place(call, launch->stream->context);
    memcpy(record->grid, launch->grid, sizeof(record->grid));
    memcpy(record->block, launch->block, sizeof(record->block));
    record->shared = launch->shared;
    text_add(&call->details, " grid=%u,%u,%u block=%u,%u,%u shared=%u attributes=", launch->grid[0],
             launch->grid[1], launch->grid[2], launch->block[0], launch->block[1], launch->block[2],
             launch->shared);
    unsigned int count = launch->attributes == NULL ? 0 : launch->attribute_count;
    record->attribute_count = count;
    if (count > RECORDING_ATTRIBUTES_MAX)
        count = RECORDING_ATTRIBUTES_MAX;
    if (count != 0)
        memcpy(record->attributes, launch->attributes, count * sizeof(CUlaunchAttribute));
    text_attributes(&call->details, record->attributes, count);
    call_arguments(call, launch);
    text_add(&call->details, " capture=%d", record->capturing);
}

void call_effective(struct call *call, const struct attribute_set *attributes)
{
    if (call->record == NULL)
        return;
    attribute_list(attributes, &call->record->effective);
    text_add(&call->details, " effective=");
    text_attributes(&call->details, call->record->effective.list, call->record->effective.count);
}

void call_kernel_node(struct call *call, const struct kernel_node *kernel)
{
    struct recording_call *record = call->record;
    if (record == NULL)
        return;
    CUfunction as_function = (CUfunction)(void *)kernel->kern;
    call_function(call, kernel->func != NULL ? kernel->func : as_function);
    memcpy(record->grid, kernel->grid, sizeof(record->grid));
    memcpy(record->block, kernel->block, sizeof(record->block));
    record->shared = kernel->shared;
    text_add(&call->details, " grid=%u,%u,%u block=%u,%u,%u shared=%u", kernel->grid[0],
             kernel->grid[1], kernel->grid[2], kernel->block[0], kernel->block[1], kernel->block[2],
             kernel->shared);
    call_place(call, kernel->context);
    attribute_list(&kernel->attributes, &record->effective);
    text_add(&call->details, " attributes=");
    text_attributes(&call->details, record->effective.list, record->effective.count);
}

void call_context(struct call *call, CUcontext context)
{
    if (call->record == NULL)
        return;
    if (context != NULL && context_is(context) && context->primary)
        text_add(&call->details, " context=primary#%d", context->device);
    else
        call_object(call, "context", OBJECT_CONTEXT, context);
}

void call_sms(struct call *call, const struct sm_set *sms)
{
    if (call->record == NULL)
        return;
    call->record->sms = sm_set_count(sms);
    memcpy(call->record->sm_set, sms->bits, sizeof(call->record->sm_set));
    text_add(&call->details, " sms=%u sm_set=", call->record->sms);
    text_sm_set(&call->details, sms);
}

void call_place(struct call *call, CUcontext context)
{
    call_context(call, context);
    if (call->record == NULL || context == NULL || !context_is(context))
        return;
    if (context->green != NULL)
        call_object(call, "green_context", OBJECT_GREEN_CONTEXT, context->green);
    struct sm_set sms = context_sms(context);
    call->record->context = context;
    call->record->green_context = context->green;
    call_sms(call, &sms);
}
