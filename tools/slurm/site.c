/* SPDX-License-Identifier: Apache-2.0 */
#include "site.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "policy/site.h"
#include "settings.h"

static void encode(struct slurm_site *site, const char *text, size_t length,
                   slurm_complain *complain)
{
    char line[SLURM_MESSAGE_SIZE];

    site->variable = policy_site_encode(text, length);
    if (site->variable == NULL) {
        complain("out of memory");
    } else if (strlen(site->variable) > POLICY_SITE_VARIABLE_LIMIT) {
        snprintf(line, sizeof line,
                 "the site's file is too large for a variable (%zu bytes of %d): containers do "
                 "without it",
                 strlen(site->variable), (int)POLICY_SITE_VARIABLE_LIMIT);
        complain(line);
        free(site->variable);
        site->variable = NULL;
    }
}

void slurm_site_read(struct slurm_site *site, slurm_complain *complain)
{
    const struct policy_site_place place = policy_site_place();
    struct policy_diagnostics diagnostics;
    size_t length = 0;
    bool absent = true;
    char *text;

    *site = (struct slurm_site){0};
    policy_diagnostics_init(&diagnostics);
    diagnostics.errors_only = true;
    diagnostics.file = malloc(strlen("site ") + strlen(place.path) + 1);
    if (diagnostics.file != NULL) {
        strcpy(diagnostics.file, "site ");
        strcat(diagnostics.file, place.path);
    }
    text = policy_site_read(&place, &length, &absent, &diagnostics);
    if (text != NULL) {
        site->policy = policy_site_parse(text, length, place.path, &diagnostics);
    }
    if (site->policy != NULL) {
        site->asks = policy_site_asks(site->policy);
        encode(site, text, length, complain);
    } else if (!absent) {
        slurm_complain_of(&diagnostics, complain);
        complain("the site's file is not applied");
    }
    free(text);
    policy_diagnostics_release(&diagnostics);
}

void slurm_site_release(struct slurm_site *site)
{
    free(site->variable);
    policy_free(site->policy);
    *site = (struct slurm_site){0};
}
