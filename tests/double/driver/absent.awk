# SPDX-License-Identifier: Apache-2.0
# Names and versions of the look-up lists (data/*.tsv), once each, as initialisers of entry.c. Rows for
# the per-thread default stream have versions of their own and always a row beside them without.
BEGIN { FS = "\t" }
/^#/ || $1 == "" || $3 != 0 { next }
!(($1, $2) in seen) { seen[$1, $2] = 1; printf "{\"%s\", %d},\n", $1, $2 }
