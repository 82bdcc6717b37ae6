# SPDX-License-Identifier: Apache-2.0
# Names and versions of the look-up lists (data/*.tsv), once each, as initialisers of entry.c.
BEGIN { FS = "\t" }
/^#/ || $1 == "" { next }
!(($1, $2) in seen) { seen[$1, $2] = 1; printf "{\"%s\", %d},\n", $1, $2 }
