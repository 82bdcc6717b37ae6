/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of streams. Measured: they can be set on created, green-context, legacy and per-thread
 * streams alike, and while the stream captures; not on the legacy stream while a blocking stream
 * captures (error 906), which invalidates that capture. */
#include "driver.h"

static CUresult check(struct call *call, CUstream handle, CUstream stream)
{
    if (call->result != CUDA_SUCCESS)
        return call->result;
    if (stream == NULL && context_current() == NULL)
        return CUDA_ERROR_INVALID_CONTEXT;
    return stream == NULL ? stream_refusal(handle) : capture_check_legacy(stream);
}

static CUresult set(const char *name, CUstream standard, CUstream handle, CUstreamAttrID id,
                    const CUstreamAttrValue *value)
{
    struct call call = call_begin(name);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    if (call.record != NULL && value != NULL) {
        text_add(&call.details, " attribute=");
        text_attribute(&call.details, (unsigned int)id, value);
        call.record->attribute_count = 1;
        call.record->attributes[0].id = id;
        call.record->attributes[0].value = *value;
    }
    CUresult result = check(&call, handle, stream);
    /* Documented: ids that are not for streams are invalid values. */
    if (result == CUDA_SUCCESS && (value == NULL || !attribute_on_stream((unsigned int)id)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        CUlaunchAttributeValue clean = *value;
        result = attribute_check((unsigned int)id, &clean);
        if (result == CUDA_SUCCESS)
            attribute_put(&stream->attributes, (unsigned int)id, &clean);
        if (result == CUDA_SUCCESS && id == CU_LAUNCH_ATTRIBUTE_PRIORITY)
            stream->priority = clean.priority;
    }
    return call_end(&call, result);
}

static CUresult get(const char *name, CUstream standard, CUstream handle, CUstreamAttrID id,
                    CUstreamAttrValue *value)
{
    struct call call = call_begin(name);
    CUstream stream = stream_of(handle, standard, true);
    call_stream(&call, handle, stream);
    call_add(&call, "id=%d", (int)id);
    CUresult result = check(&call, handle, stream);
    if (result == CUDA_SUCCESS && (value == NULL || !attribute_on_stream((unsigned int)id)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        attribute_default((unsigned int)id, value);
        if (attribute_has(&stream->attributes, (unsigned int)id))
            *value = stream->attributes.value[id];
    }
    return call_end(&call, result);
}

/* Measured: priority, domain and map are copied, and streams of two contexts are refused (1), of a
 * green context and of its primary one, too. Documented: all attributes are copied. Assumed: the
 * legacy stream is treated as when one attribute is set. */
static CUresult copy(const char *name, CUstream standard, CUstream to_handle, CUstream from_handle)
{
    struct call call = call_begin(name);
    CUstream to = stream_of(to_handle, standard, true);
    CUstream from = stream_of(from_handle, standard, true);
    call_stream(&call, to_handle, to);
    if (call.record != NULL) {
        char text[32];
        text_add(&call.details, " from=%s", stream_name(from, text, sizeof(text)));
    }
    CUresult result = check(&call, to == NULL ? to_handle : from_handle, to == NULL ? to : from);
    if (result == CUDA_SUCCESS)
        result = capture_check_legacy(from);
    if (result == CUDA_SUCCESS && to->context != from->context)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        to->attributes = from->attributes;
        to->priority = from->priority;
    }
    return call_end(&call, result);
}

CUresult CUDAAPI cuStreamSetAttribute(CUstream hStream, CUstreamAttrID attr,
                                      const CUstreamAttrValue *value)
{
    return set(__func__, CU_STREAM_LEGACY, hStream, attr, value);
}

CUresult CUDAAPI cuStreamSetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr,
                                           const CUstreamAttrValue *value)
{
    return set(__func__, CU_STREAM_PER_THREAD, hStream, attr, value);
}

CUresult CUDAAPI cuStreamGetAttribute(CUstream hStream, CUstreamAttrID attr,
                                      CUstreamAttrValue *value_out)
{
    return get(__func__, CU_STREAM_LEGACY, hStream, attr, value_out);
}

CUresult CUDAAPI cuStreamGetAttribute_ptsz(CUstream hStream, CUstreamAttrID attr,
                                           CUstreamAttrValue *value_out)
{
    return get(__func__, CU_STREAM_PER_THREAD, hStream, attr, value_out);
}

CUresult CUDAAPI cuStreamCopyAttributes(CUstream dst, CUstream src)
{
    return copy(__func__, CU_STREAM_LEGACY, dst, src);
}

CUresult CUDAAPI cuStreamCopyAttributes_ptsz(CUstream dst, CUstream src)
{
    return copy(__func__, CU_STREAM_PER_THREAD, dst, src);
}
