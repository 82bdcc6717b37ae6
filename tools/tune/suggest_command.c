/* SPDX-License-Identifier: Apache-2.0 */

/* tune --suggest: the command. */

#include "suggest_rules.h"

#include <stdlib.h>

#include "command.h"
#include "output_file.h"
#include "tune_option.h"

int suggest_command(const struct tune_options *options)
{
    struct output_file output = {.stream = stdout};
    struct results results = {0};
    int64_t processes = 0;
    char *reason = NULL;
    size_t count = 0;
    bool loaded = suggest_rules_load(&results, options->suggest, &processes);
    bool written = true;

    if (loaded && options->output != NULL &&
        !output_file_open(&output, options->output, options->ab.force)) {
        loaded = false;
    }
    if (loaded) {
        char *text = NULL;
        size_t length;
        FILE *stream = open_memstream(&text, &length);

        count = suggest_rules(&results, processes, stream, &reason);
        fclose(stream);
        if (options->output != NULL && count == 0) {
            output_file_abandon(&output);
        } else {
            output_file_begin(&output);
            fwrite(text, 1, length, output.stream);
            written = options->output == NULL || output_file_close(&output);
        }
        if (count == 0) {
            command_error("nothing to suggest: %s", reason);
        }
        free(text);
    }
    free(reason);
    results_release(&results);
    if (!loaded || !written) {
        return COMMAND_RUN_FAILED;
    }
    return command_finish(count > 0 ? COMMAND_SUCCESS : COMMAND_FAILURE);
}
