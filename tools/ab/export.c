/* SPDX-License-Identifier: Apache-2.0 */
#include "export.h"

#include <string.h>
#include <strings.h>

#include "export_formats.h"
#include "json_output.h"

bool ab_format_of(const char *path, enum ab_format *format)
{
    static const struct {
        const char *suffix;
        enum ab_format format;
    } suffixes[] = {
        {".json", AB_FORMAT_JSON},
        {".csv", AB_FORMAT_CSV},
        {".md", AB_FORMAT_MARKDOWN},
        {".html", AB_FORMAT_HTML},
    };
    size_t length = strlen(path);

    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t suffix = strlen(suffixes[i].suffix);

        if (length >= suffix && strcasecmp(path + length - suffix, suffixes[i].suffix) == 0) {
            *format = suffixes[i].format;
            return true;
        }
    }
    return false;
}

void ab_export(const struct ab_experiment *experiment, const struct ab_analysis *analysis,
               enum ab_format format, FILE *stream)
{
    switch (format) {
    case AB_FORMAT_JSON:
        json_output_print(ab_export_json(experiment, analysis), stream);
        break;
    case AB_FORMAT_CSV:
        ab_export_csv(experiment, stream);
        break;
    case AB_FORMAT_MARKDOWN:
        ab_export_markdown(experiment, analysis, stream);
        break;
    case AB_FORMAT_HTML:
        ab_export_html(experiment, analysis, stream);
        break;
    }
}
