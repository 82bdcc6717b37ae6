# SPDX-License-Identifier: Apache-2.0
# Turns a look-up list (data/*.tsv) into initialisers of lookup.c.
BEGIN { FS = "\t" }
/^#/ { next }
{ printf "{\"%s\", %d, %d},\n", $1, $2, $3 }
