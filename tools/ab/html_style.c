/* SPDX-License-Identifier: Apache-2.0 */
#include "html_style.h"

#include <string.h>

#include "html_text.h"

/*
 * Colours are those of Okabe and Ito, which readers with any common colour blindness tell apart,
 * made darker for the light background and lighter for the dark one until text in them has a
 * contrast of 4.5 to 1. Shapes say the same.
 */
const char html_style_sheet[] =
    ":root{color-scheme:light dark;"
    "--bg:#fff;--fg:#1b1f24;--muted:#57606a;--line:#d0d7de;--band:#eef1f4;--box:#f6f8fa;"
    "--good:#0b6b3a;--bad:#b3261e;--flag:#9a5b00;"
    "--a0:#57606a;--a1:#0067a5;--a2:#b84a00;--a3:#007a58;--a4:#a23b7a;--a5:#8a6400;--a6:#3f4fb5;"
    "--a7:#0b7285}\n"
    "@media(prefers-color-scheme:dark){:root{"
    "--bg:#0f1317;--fg:#e6edf3;--muted:#9aa7b4;--line:#3a434c;--band:#1a2128;--box:#161c22;"
    "--good:#58d68d;--bad:#ff8a80;--flag:#ffb74d;"
    "--a0:#a9b4bf;--a1:#56b4e9;--a2:#ff9a4d;--a3:#2fc79a;--a4:#e38bc0;--a5:#e6c34a;--a6:#9fa8ff;"
    "--a7:#4dd0e1}}\n"
    "*{box-sizing:border-box}\n"
    "body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:72rem;background:var(--bg);"
    "color:var(--fg);font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}\n"
    "h1{font-size:1rem;font-weight:600;color:var(--muted);margin:0 0 .5rem}\n"
    "h2{font-size:1.2rem;margin:2.5rem 0 .5rem}\n"
    "p{margin:.5rem 0}\n"
    ".answer{font-size:1.45rem;line-height:1.35;font-weight:600;margin:0 0 1rem;padding:.8rem 1rem;"
    "background:var(--box);border-left:.3rem solid var(--muted);border-radius:.25rem}\n"
    ".answer.shown{border-color:var(--good)}.answer.broken{border-color:var(--bad)}\n"
    ".note,figcaption{color:var(--muted);font-size:.9rem}\n"
    ".warnings{margin:1rem 0;padding:.6rem 1rem;background:var(--box);border-left:.3rem solid "
    "var(--flag);border-radius:.25rem}.warnings h2{margin:0;font-size:1rem}\n"
    ".warnings ul{margin:.3rem 0 0;padding-left:1.2rem}\n"
    "figure{margin:0 0 1rem}\n"
    "table{border-collapse:collapse;width:100%;font-size:.93rem;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{text-align:left;padding:.35rem .7rem .35rem 0;border-bottom:1px solid var(--line);"
    "vertical-align:top;overflow-wrap:break-word}\n"
    "thead th{color:var(--muted);font-weight:600}\n"
    ".n{text-align:right;white-space:nowrap}\n"
    ".lines{white-space:pre-line}td.long{overflow-wrap:anywhere}tbody "
    "th{min-width:8.5rem}.v{min-width:9rem}\n"
    ".v{font-weight:600}.v.better{color:var(--good)}.v.worse,.v.broken{color:var(--bad)}\n"
    ".key{width:14px;height:14px;margin-right:.35rem;vertical-align:-2px;overflow:visible}\n"
    ".legend{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;list-style:none;padding:0;"
    "margin:.5rem 0;font-size:.93rem}\n"
    ".legend span{color:var(--muted)}\n"
    /* A plot's coordinates across are percentages, so that it fits any width and its text keeps
     * its size; labels of the axis stand in the margin. */
    ".plot{padding-left:4rem;padding-right:.8rem}\n"
    ".plot svg,.row>svg{display:block;width:100%;overflow:visible}\n"
    "svg text{fill:var(--muted);font-size:12px;font-variant-numeric:tabular-nums}\n"
    ".end{text-anchor:end}.mid{text-anchor:middle}\n"
    ".grid{stroke:var(--line);stroke-width:1}.one{stroke:var(--fg);stroke-width:1.5}\n"
    ".block{fill:var(--band)}.margin{fill:var(--muted);fill-opacity:.2}\n"
    ".dot{stroke:var(--bg);stroke-width:.6}\n"
    ".faint{opacity:.45}\n"
    ".hollow{stroke:currentColor;stroke-width:1.6}\n"
    ".cross{stroke:currentColor;stroke-width:2.2;fill:none}\n"
    ".ring{fill:none;stroke:var(--flag);stroke-width:1.8}\n"
    ".mean{stroke:var(--fg);stroke-width:2.5}\n"
    ".wide{stroke:currentColor;stroke-width:2.5}.inner{stroke:currentColor;stroke-width:7;"
    "stroke-opacity:.45}\n"
    ".row{display:grid;grid-template-columns:19rem 1fr;column-gap:1rem;align-items:center;"
    "padding-right:.8rem}\n"
    ".row svg{height:4.2rem}.row svg.key{height:14px}.row svg.axis{height:2.5rem}\n"
    ".row .label{font-size:.93rem;line-height:1.3;padding:.2rem 0}\n"
    ".row .label span{display:block;color:var(--muted)}\n"
    "dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;font-size:.93rem}\n"
    "dt{color:var(--muted)}dd{margin:0;min-width:0}\n"
    "code{font:.9em ui-monospace,monospace}\n"
    ".a0{color:var(--a0)}.a1{color:var(--a1)}.a2{color:var(--a2)}.a3{color:var(--a3)}"
    ".a4{color:var(--a4)}.a5{color:var(--a5)}.a6{color:var(--a6)}.a7{color:var(--a7)}\n"
    ".a0,.a1,.a2,.a3,.a4,.a5,.a6,.a7{fill:currentColor}.hollow{fill:var(--bg)}\n"
    /* On a phone a row of a table is a card of lines, each with its column's name. */
    "@media(max-width:52rem){"
    ".row{grid-template-columns:1fr}.row svg{height:2.8rem}.row .label{padding:.5rem 0 .1rem}"
    ".answer{font-size:1.2rem}.plot{padding-left:3rem}"
    "thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}"
    "table,tbody,td,tbody th{display:block}"
    "tr{display:grid;grid-template-columns:1fr 1fr;column-gap:1rem;padding:.5rem 0;"
    "border-bottom:1px solid var(--line)}"
    "td,tbody th{border:0;padding:.05rem 0;min-width:0;text-align:left;white-space:normal}"
    "td.n{text-align:left;white-space:normal}tbody th,td.v,td.long{grid-column:1/3}"
    "td[data-label]:before{content:attr(data-label) \": \";color:var(--muted)}"
    "td:empty{display:none}dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}}\n"
    "@media print{body{max-width:none}}\n";

/* The shapes, with ids that begin with prefix. */
static void write_shapes(FILE *stream, char prefix, double size)
{
    html_markup(stream, "<circle id=\"%c0\" r=\"%.1f\"/>\n", prefix, size);
    html_markup(stream, "<rect id=\"%c1\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                prefix, -0.9 * size, -0.9 * size, 1.8 * size, 1.8 * size);
    html_markup(stream, "<path id=\"%c2\" d=\"M0 %.1fL%.1f %.1fH%.1fz\"/>\n", prefix, -1.2 * size,
                1.15 * size, 0.85 * size, -1.15 * size);
    html_markup(stream, "<path id=\"%c3\" d=\"M0 %.1fL%.1f 0L0 %.1fL%.1f 0z\"/>\n", prefix,
                -1.3 * size, 1.3 * size, 1.3 * size, -1.3 * size);
    html_markup(stream, "<path id=\"%c4\" d=\"M0 %.1fL%.1f %.1fH%.1fz\"/>\n", prefix, 1.2 * size,
                1.15 * size, -0.85 * size, -1.15 * size);
    html_markup(stream, "<path id=\"%cx\" d=\"M%.1f %.1fL%.1f %.1fM%.1f %.1fL%.1f %.1f\"/>\n",
                prefix, -size, -size, size, size, -size, size, size, -size);
    html_markup(stream, "<circle id=\"%co\" r=\"%.1f\"/>\n", prefix, 1.8 * size);
}

void html_style_marks(FILE *stream, size_t run_count)
{
    html_markup(stream, "<svg width=\"0\" height=\"0\" style=\"position:absolute\" "
                        "aria-hidden=\"true\"><defs>\n");
    write_shapes(stream, 's', run_count > 600 ? 2.6 : run_count > 250 ? 3.3 : 4.2);
    write_shapes(stream, 'k', 4.2);
    html_markup(stream, "</defs></svg>\n");
}

struct html_mark html_style_mark(const struct ab_experiment *experiment, size_t arm)
{
    struct html_mark mark;
    unsigned number = 0;

    /* Arms that the user did not ask about are grey; hollow where they are not the baseline. */
    switch (experiment->arms[arm].role) {
    case AB_ROLE_BASELINE:
        return (struct html_mark){"a0", '0'};
    case AB_ROLE_REPEAT:
        return (struct html_mark){"a0 hollow", '0'};
    case AB_ROLE_COST:
        return (struct html_mark){"a0 hollow", '3'};
    case AB_ROLE_CANDIDATE:
        break;
    }
    for (size_t i = 0; i < arm; i++) {
        number += experiment->arms[i].role == AB_ROLE_CANDIDATE;
    }
    snprintf(mark.colour, sizeof mark.colour, "a%u", 1 + number % 7);
    mark.shape = (char)('0' + (1 + number) % 5);
    return mark;
}
