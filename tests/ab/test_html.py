# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment, as a browser shows it. Skipped where there is no browser."""

import os
import re
import subprocess
import sys
import unittest

import browser

sys.path.append(os.path.join(os.environ["CUDAPOLICY_TEST_SOURCE"], "tests", "command"))
import support  # noqa: E402

MAKE_PAGE = os.environ["CUDAPOLICY_TEST_MAKE_PAGE"]
BROWSER = browser.find()

ARMS = ["none", "none-again", "observe", "fast", "slow", "same", "few", "broken"]

# Elements of which a part is right of the window, or left of it.
OVERFLOWING = """
[...document.querySelectorAll('body *')].filter(element => {
    const box = element.getBoundingClientRect();
    return box.width > 0 && !element.closest('thead') &&
           (box.right > document.documentElement.clientWidth + 1 || box.left < -1);
}).map(element => element.outerHTML.slice(0, 200))
"""

# For each element that has text of its own: its colour and the first background behind it that is one.
TEXT_COLOURS = """
[...document.querySelectorAll('body *')].filter(element =>
    [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()) &&
    !['title', 'desc', 'style'].includes(element.localName)
).map(element => {
    const svg = element instanceof SVGElement;
    const style = getComputedStyle(element);
    let behind = element, background = 'rgba(0, 0, 0, 0)';
    while (behind && background === 'rgba(0, 0, 0, 0)') {
        background = getComputedStyle(behind).backgroundColor;
        behind = behind.parentElement;
    }
    return [svg ? style.fill : style.color, background, element.textContent.slice(0, 40)];
})
"""


def luminance(colour):
    """Relative luminance as the Web Content Accessibility Guidelines define it."""
    channels = [int(number) / 255 for number in re.findall(r"\d+", colour)[:3]]
    channels = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4
                for value in channels]
    return 0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2]


def contrast(one, other):
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@unittest.skipUnless(BROWSER, "no browser: " + ", ".join(browser.NAMES))
class Page(support.Case):
    @classmethod
    def setUpClass(cls):
        cls.window = browser.Browser(BROWSER)

    @classmethod
    def tearDownClass(cls):
        cls.window.close()

    def make(self, arms=8, blocks=20, live=False):
        path = self.path("page.html")
        subprocess.run([MAKE_PAGE, path, str(arms), str(blocks), *(["live"] if live else [])], check=True,
                       timeout=support.TIME_LIMIT)
        return path

    def count(self, selector):
        return self.window.evaluate(f"document.querySelectorAll({selector!r}).length")

    def test_nothing_is_loaded_and_nothing_complained_of(self):
        path = self.make()
        for scheme in ("light", "dark"):
            self.window.open(path, scheme=scheme)
            self.assertEqual(self.window.requests(), ["file://" + path])
            self.assertEqual(self.window.complaints(), [])

    def test_no_element_is_wider_than_the_window(self):
        for blocks in (20, 125):
            path = self.make(blocks=blocks)
            for width in (1280, 400, 320):
                self.window.open(path, width=width)
                self.assertEqual(self.window.evaluate(OVERFLOWING), [], f"at {width} pixels")
                self.assertEqual(self.window.evaluate("document.documentElement.scrollWidth"), width)

    def test_slices_of_a_live_comparison_have_the_same_page(self):
        # Of 4,000 blocks up to three are one mark, so that 4 x 5 x 267 are left.
        for blocks, marks in ((20, 4 * 5 * 20), (800, 4 * 5 * 267)):
            path = self.make(arms=4, blocks=blocks, live=True)
            for width, scheme in ((1280, "light"), (400, "dark")):
                self.window.open(path, width=width, scheme=scheme)
                self.assertEqual(self.window.requests(), ["file://" + path])
                self.assertEqual(self.window.complaints(), [])
                self.assertEqual(self.window.evaluate(OVERFLOWING), [], f"at {width} pixels")
                self.assertEqual(self.count("#runs .dot"), marks)
                self.assertEqual(self.count("#runs .ring"), marks // 5)
                self.assertEqual(self.count("#runs .block"), 2)  # every other one of five runs
                self.assertEqual(self.count("#intervals .estimate"), 3)
            texts = self.window.evaluate("document.body.textContent")
            self.assertEqual("mean of the arm's slices in up to 3 neighbouring blocks" in texts, blocks == 800)
            self.assertIn("Slices in order", texts)
            self.assertLess(os.path.getsize(path), 3_000_000)

    def test_light_and_dark_differ_and_text_is_legible_in_both(self):
        path = self.make()
        backgrounds = {}
        for scheme in ("light", "dark"):
            self.window.open(path, scheme=scheme)
            backgrounds[scheme] = self.window.evaluate("getComputedStyle(document.body).backgroundColor")
            texts = self.window.evaluate(TEXT_COLOURS)
            self.assertGreater(len(texts), 100)
            for colour, background, text in texts:
                self.assertGreaterEqual(contrast(colour, background), 4.5,
                                        f"{scheme}: '{text}' is {colour} on {background}")
        self.assertGreater(luminance(backgrounds["light"]), 0.9)
        self.assertLess(luminance(backgrounds["dark"]), 0.05)

    def test_marks_stand_out_from_the_background_in_both(self):
        path = self.make()
        for scheme in ("light", "dark"):
            self.window.open(path, scheme=scheme)
            background = self.window.evaluate("getComputedStyle(document.body).backgroundColor")
            colours = self.window.evaluate(
                "[...new Set([...document.querySelectorAll('.dot')].map(e => getComputedStyle(e).color))]")
            self.assertGreaterEqual(len(colours), 6)
            for colour in colours:
                self.assertGreaterEqual(contrast(colour, background), 3, f"{scheme}: {colour}")

    def test_screenshots_are_of_a_page_with_something_on_it(self):
        path = self.make()
        pictures = []
        for scheme in ("light", "dark"):
            self.window.open(path, scheme=scheme)
            pictures.append(self.window.screenshot())
        self.assertTrue(all(len(picture) > 50000 for picture in pictures))
        self.assertNotEqual(*pictures)

    def test_every_run_has_a_dot_inside_the_plot(self):
        for arms, blocks in ((8, 20), (4, 12), (8, 125)):
            self.window.open(self.make(arms, blocks))
            self.assertEqual(self.count("#runs .dot"), arms * (blocks + 2))
            outside = self.window.evaluate("""
                (() => { const plot = document.querySelector('#runs').getBoundingClientRect();
                         return [...document.querySelectorAll('#runs .dot')].filter(dot => {
                             const box = dot.getBoundingClientRect();
                             return box.width === 0 || box.left < plot.left - 8 ||
                                    box.right > plot.right + 8 || box.top < plot.top - 8 ||
                                    box.bottom > plot.bottom + 8; }).length; })()""")
            self.assertEqual(outside, 0)

    def test_failed_and_flagged_runs_are_marked(self):
        self.window.open(self.make())
        self.assertEqual(self.count("#runs .cross"), 8)
        self.assertEqual(self.count("#runs .ring"), 1)
        titles = self.window.evaluate(
            "[...document.querySelectorAll('#runs .cross title')].map(e => e.textContent)")
        self.assertTrue(any("check failed: the check said: <b>loss is nan</b>" in text for text in titles))
        messages = self.window.evaluate("[...document.querySelectorAll('.lines')].map(e => e.innerText)")
        self.assertEqual(len(messages), 8)
        self.assertIn('the check said: <b>loss is nan</b>, "expected" 0.5\n=> bad', messages)

    def test_every_arm_is_named_in_the_table_and_in_each_plot(self):
        self.window.open(self.make())
        table = self.window.evaluate(
            "[...document.querySelector('table').querySelectorAll('tbody th')].map(e => e.textContent)")
        self.assertEqual(table, ARMS)
        legend = self.window.evaluate("document.querySelector('.legend').textContent")
        for arm in ARMS:
            self.assertIn(arm, legend)
        for plot in ("#intervals", "#blocks"):
            labels = self.window.evaluate(
                f"[...document.querySelectorAll('{plot} .label')].map(e => e.firstChild.nextSibling?.textContent)")
            self.assertEqual(labels[:-1], ARMS[1:])

    def test_each_block_has_a_ratio_and_each_arm_an_interval(self):
        self.window.open(self.make())
        # in one block the baseline failed; in seven the broken arm did, one of them the same
        self.assertEqual(self.count("#blocks .point"), 6 * 19 + 13)
        self.assertEqual(self.count("#blocks .mean"), 7)
        self.assertEqual(self.count("#intervals .wide"), 7)
        self.assertEqual(self.count("#intervals .inner"), 7)
        self.assertEqual(self.count("#intervals .margin"), 7)

    def test_the_answer_stands_first_and_how_it_was_decided_after(self):
        self.window.open(self.make())
        text = self.window.evaluate("document.body.innerText")
        places = [text.index(part) for part in (
            "fast is 1.4", "Warnings", "Noise floor", "Intervals", "block by block", "Runs in order",
            "Exploratory metrics", "How it was decided", "20260304")]
        self.assertEqual(places, sorted(places))
        self.assertIn("<script>alert('\\''1'\\'')</script> & \"more\"", text)

    def test_pictures_have_titles_and_tables_keep_their_roles(self):
        self.window.open(self.make(), width=400)
        self.assertEqual(self.window.evaluate(
            "[...document.querySelectorAll('svg[role=img]')].filter(e => !e.querySelector(':scope > title')).length"),
            0)
        self.assertEqual(self.count("svg:not([role=img]):not([aria-hidden=true])"), 0)
        self.assertEqual(self.count("td:not([role=cell]), tr:not([role=row]), table:not([role=table])"), 0)
        ids = self.window.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(ids), len(set(ids)))

    def test_markup_in_names_stays_text(self):
        self.window.open(self.make())
        self.assertEqual(self.count("script"), 0)
        self.assertEqual(self.count("b"), 0)


if __name__ == "__main__":
    support.main()
