/* SPDX-License-Identifier: Apache-2.0 */

/* The selector `device`: indices, UUIDs and PCI addresses. */

#include <string.h>

#include "policy/value.h"

static int hexadecimal_digit(char character)
{
    if (character >= '0' && character <= '9') {
        return character - '0';
    }
    character |= 0x20;
    return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

static bool has_prefix(const char *text, size_t length, const char *prefix)
{
    for (size_t i = 0; prefix[i] != '\0'; i++) {
        if (i >= length || (text[i] | 0x20) != prefix[i]) {
            return false;
        }
    }
    return true;
}

/* text follows "GPU-": digits and hyphens in the form 8-4-4-4-12, or the beginning of one. */
static bool read_uuid(const char *text, size_t length, struct policy_device *device)
{
    unsigned digits = 0;

    device->form = POLICY_DEVICE_UUID;
    for (size_t i = 0; i < length; i++) {
        if (i == 8 || i == 13 || i == 18 || i == 23) {
            if (text[i] != '-') {
                return false;
            }
            continue;
        }
        int digit = hexadecimal_digit(text[i]);
        if (digit < 0 || digits == 32) {
            return false;
        }
        uint8_t *byte = &device->uuid.bytes[digits / 2];
        *byte = (uint8_t)(*byte << 4 | digit);
        digits++;
    }
    device->uuid.bytes_known = (uint8_t)(digits / 2);
    return digits >= 2 && digits % 2 == 0;
}

/* Hexadecimal digits up to the separator or the end; advances past the separator. */
static bool read_field(const char **text, const char *end, char separator, size_t limit,
                       uint32_t *number)
{
    size_t digits = 0;

    *number = 0;
    while (*text < end && **text != separator) {
        int digit = hexadecimal_digit(**text);

        if (digit < 0 || digits == limit) {
            return false;
        }
        *number = *number << 4 | (uint32_t)digit;
        digits++;
        (*text)++;
    }
    if (*text < end) {
        (*text)++;
    }
    return digits != 0;
}

/* [domain:]bus:device[.0] */
static bool read_pci(const char *text, size_t length, struct policy_device *device)
{
    const char *end = text + length;
    const char *first = memchr(text, ':', length);
    const char *second = memchr(first + 1, ':', (size_t)(end - first - 1));
    const char *dot = memchr(text, '.', length);
    uint32_t domain = 0, bus, slot;

    if (dot != NULL) {
        /* A GPU is function 0; other functions of the card are its audio or USB part. */
        if (end - dot != 2 || dot[1] != '0') {
            return false;
        }
        end = dot;
    }
    if (second != NULL && !read_field(&text, end, ':', 8, &domain)) {
        return false;
    }
    if (!read_field(&text, end, ':', 2, &bus) || !read_field(&text, end, ':', 2, &slot) ||
        text != end || end[-1] == ':' || slot > 31) {
        return false;
    }
    device->form = POLICY_DEVICE_PCI;
    device->pci.domain = domain;
    device->pci.bus = (uint8_t)bus;
    device->pci.device = (uint8_t)slot;
    return true;
}

static bool read_device(struct policy_value_text *value, struct policy_value_item item,
                        struct policy_device *device)
{
    const char *text = value->text + item.offset;
    struct policy_quotation quotation;

    *device = (struct policy_device){0};
    policy_quote(&quotation, text, item.length);
    if (has_prefix(text, item.length, "mig-")) {
        policy_value_error(
            value, item.offset,
            "\"%s\" names a MIG instance; use the index by which the program knows it",
            quotation.text);
        return false;
    }
    if (has_prefix(text, item.length, "gpu-")) {
        if (!read_uuid(text + 4, item.length - 4, device)) {
            policy_value_error(
                value, item.offset,
                "\"%s\" is not a UUID (GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx), or its beginning "
                "with an even number of digits",
                quotation.text);
            return false;
        }
        return true;
    }
    if (memchr(text, ':', item.length) != NULL) {
        if (!read_pci(text, item.length, device)) {
            policy_value_error(value, item.offset,
                               "\"%s\" is not the PCI address of a GPU (like 0000:3b:00.0)",
                               quotation.text);
            return false;
        }
        return true;
    }
    device->form = POLICY_DEVICE_INDEX;
    return policy_value_range(value, item.offset, item.length, &device->index);
}

bool policy_value_devices(struct policy_value_text *value, struct policy_devices *devices)
{
    struct policy_value_item item;
    size_t next = 0;
    bool good = true;

    while (policy_value_next(value, &next, &item)) {
        struct policy_device device;

        if (!read_device(value, item, &device)) {
            good = false;
            continue;
        }
        struct policy_device *items =
            policy_arena_grow(value->arena, devices->devices, devices->count, sizeof *items);
        if (items == NULL) {
            value->out_of_memory = true;
            return false;
        }
        items[devices->count++] = device;
        devices->devices = items;
    }
    return good;
}
