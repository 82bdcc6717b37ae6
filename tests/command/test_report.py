# SPDX-License-Identifier: Apache-2.0
"""cudapolicy report, on reports written here: merging, tables, bad input."""

import copy
import json
import os

import support


def kinds(eager=0, captured=0, node=0, replayed=0):
    return {"eager": eager, "captured": captured, "node": node, "replayed": replayed}


def rule(name, launches=0, applied=0, refused=None, streams=None, section="kernel", line=4):
    return {"section": section, "name": name, "line": line,
            "matched": launches > 0 or streams is not None, "kernels": 1 if launches else 0,
            "launches": launches, "launches_by_kind": kinds(launches), "applied": applied,
            "already_so": 0, "kept": 0, "refused": refused or {},
            "on_streams": streams or {"streams": 0, "applied": 0, "already_so": 0, "kept": 0,
                                      "refused": {}}}


def kernel(name, launches, rules=(), library="app", shapes=None):
    return {"name": name, "signature": name, "mangled": name, "library": library,
            "demangled": True, "launches": launches, "launches_by_kind": kinds(launches),
            "shapes": shapes,
            "settings": [{"setting": "priority", "rule_section": "kernel", "rule": r,
                          "outcome": "applied", "reason": "", "detail": 0, "launches": launches,
                          "launches_by_kind": kinds(launches)} for r in rules]}


def report(pid=1, rules=(), kernels=(), mode="enforce", **members):
    document = {
        "format": "cudapolicy report", "schema": 1, "complete": True, "partial": False,
        "process": {"host": "node", "pid": pid, "argv0": "app",
                    "start": "2026-01-01T00:00:00.000Z", "end": "2026-01-01T00:00:01.000Z",
                    "running": False},
        "mode": mode, "facts": {}, "routes": [],
        "launches": sum(k["launches"] for k in kernels), "rules": list(rules),
        "kernels": list(kernels),
        "unmatched": [{"name": k["name"], "library": k["library"], "launches": k["launches"]}
                      for k in kernels if not k["settings"]],
        "streams": [], "notes": [], "overflow": {}}
    document.update(members)
    return document


class Report(support.Case):
    def write_report(self, name, *arguments, **members):
        return self.write(name, json.dumps(report(*arguments, **members)))

    def summary(self, *arguments):
        result = self.command("report", "--json", *arguments)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        return support.load_json(result.stdout)


class Tables(Report):
    def test_a_rule_has_kernels_launches_outcomes_and_reasons(self):
        path = self.write_report(
            "a.json",
            rules=[rule("k", 1234567, 1234560, {"graph": 3, "no cluster fits": 4})],
            kernels=[kernel("f", 1234567, ["k"])])
        result = self.command("report", path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        lines = result.stdout.splitlines()
        self.assertEqual(lines[0], "cudapolicy: 1,234,567 launches of 1 kernel in 1 process "
                                   "(1,234,567 eager)")
        self.assertEqual(lines[1].split(), ["rule", "kernels", "launches", "applied", "already",
                                            "so", "kept", "refused"])
        self.assertRegex(lines[2], r"^kernel k +1 +1,234,567 +1,234,560 +0 +0 +"
                                   r"3 \(graph\), 4 \(no cluster fits\)$")

    def test_streams_have_a_row_of_their_own(self):
        streams = {"streams": 2, "applied": 1, "already_so": 0, "kept": 0,
                   "refused": {"one domain": 1}}
        path = self.write_report("a.json", rules=[rule("s", section="stream", streams=streams)])
        self.assertRegex(self.command("report", path).stdout,
                         r"(?m)^stream s +- +2 streams +1 +0 +0 +1 \(one domain\)$")

    def test_observed_runs_say_that_nothing_was_changed(self):
        path = self.write_report("a.json", rules=[rule("k", 1, 1)], mode="observe",
                                 kernels=[kernel("f", 1, ["k"])])
        text = self.command("report", path).stdout
        self.assertIn("observed, nothing was changed", text)
        self.assertIn("would apply", text)

    def test_launches_without_a_rule_are_counted(self):
        path = self.write_report("a.json", rules=[rule("k")],
                                 kernels=[kernel("f", 5), kernel("g", 2)])
        self.assertIn("no rule had a setting for 7 launches of 2 kernels\n",
                      self.command("report", path).stdout)

    def test_kernels_are_listed_on_request_most_launches_first(self):
        shapes = {"grid_blocks": [1, 1024], "block_threads": [128, 128], "shared_memory": [0, 0]}
        path = self.write_report("a.json", kernels=[kernel("few", 1),
                                                    kernel("many", 9, shapes=shapes)])
        self.assertNotIn("many", self.command("report", path).stdout)
        lines = self.command("report", "--kernels", path).stdout.splitlines()
        self.assertRegex(lines[2], r"^many +app +9 +1\.\.1,024 +128 +0$")
        self.assertRegex(lines[3], r"^few +app +1 +- +- +-$")

    def test_long_names_are_shortened_to_the_width_and_whole_with_wide(self):
        name = "begin" + "x" * 4000 + "end"
        path = self.write_report("a.json", kernels=[kernel(name, 1)])
        text = self.command("report", "--kernels", path, env={"COLUMNS": "80"}).stdout
        self.assertTrue(all(len(line) <= 80 for line in text.splitlines()), text)
        self.assertRegex(text, r"beginx+\.\.\.x*end")
        self.assertIn(name, self.command("report", "--kernels", "--wide", path).stdout)

    def test_a_width_that_is_no_number_or_tiny_does_no_harm(self):
        path = self.write_report("a.json", kernels=[kernel("f" * 300, 1)])
        for columns in ("", "none", "-5", "0", "1", "99999999999999999999"):
            result = self.command("report", "--kernels", path, env={"COLUMNS": columns})
            self.assertEqual(result.returncode, 0, columns)

    def test_control_characters_do_not_reach_the_terminal(self):
        path = self.write_report(
            "a.json", rules=[rule("\x1b[2Jr", 1), rule("\x1b[2Jnone")],
            kernels=[kernel("\x1b[2Jf\n", 1, ["\x1b[2Jr"], library="\x07lib")],
            notes=[{"severity": "warning", "text": "\x1b]0;t\x07", "time": None, "count": 1}])
        text = self.command("report", "--kernels", path).stdout
        self.assertIn("\\x1b[2Jf\\x0a", text)
        self.assertFalse([c for c in text if ord(c) < 32 and c != "\n"], repr(text))

    def test_notes_of_the_library_are_shown_once(self):
        note = {"severity": "warning", "text": "not attached: static", "time": None, "count": 1}
        one = self.write_report("a.json", 1, notes=[note])
        two = self.write_report("b.json", 2, notes=[note])
        text = self.command("report", one, two).stdout
        self.assertEqual(text.count("warning: not attached: static\n"), 1)

    def test_processes_that_were_killed_are_named(self):
        path = self.write_report("a.json", complete=False,
                                 process=dict(report()["process"], end=None))
        self.assertIn("process 1 (app) did not end in good order", self.command("report", path).stdout)


    def test_counts_that_were_lost_are_told(self):
        cases = (({}, ""), ({"end": None}, "did not end in good order\n"),
                 ({"end": None, "running": True}, "still runs"))
        for changes, said in cases:
            process = dict(report()["process"], **changes)
            path = self.write_report("a.json", complete=False, partial=True, process=process)
            text = self.command("report", path).stdout
            self.assertIn("process 1 (app) has lost counts", text)
            self.assertIn(said, text)
            self.assertNotIn("complete up to", text)
            summary, = self.summary(path)["processes"]
            self.assertTrue(summary["partial"])
            path = self.write_report("a.json", complete=not changes, process=process)
            self.assertNotIn("lost", self.command("report", path).stdout)
            self.assertFalse(self.summary(path)["processes"][0]["partial"])

    def test_tables_that_were_full_are_told(self):
        tables = ("kernels", "cells", "streams", "facts", "notes")
        for table in tables:
            path = self.write_report("a.json", overflow={t: 3 if t == table else 0 for t in tables})
            text = self.command("report", path).stdout
            word = "combinations" if table == "cells" else table
            self.assertEqual([line.split(":")[0].split(" more ")[1].split()[0]
                              for line in text.splitlines() if "no room for" in line], [word])
            self.assertEqual(self.summary(path)["overflow"],
                             {t: 3 if t == table else 0 for t in tables})
        path = self.write_report("a.json", overflow=dict.fromkeys(tables, 0))
        self.assertNotIn("no room", self.command("report", path).stdout)

    def test_of_many_unfinished_processes_some_are_named(self):
        paths = [self.write_report(f"{i}.json", i, complete=False,
                                   process=dict(report(i)["process"], end=None))
                 for i in range(1, 31)]
        text = self.command("report", *paths).stdout
        self.assertEqual(text.count("did not end in good order"), 10)
        self.assertIn("20 more such processes: see --wide\n", text)
        text = self.command("report", "--wide", *paths).stdout
        self.assertEqual(text.count("did not end in good order"), 30)


class Merging(Report):
    def test_counts_of_the_same_rule_and_kernel_are_added(self):
        one = self.write_report("a.json", 1, rules=[rule("k", 3, 2, {"graph": 1})],
                                kernels=[kernel("f", 3, ["k"])])
        two = self.write_report("b.json", 2, rules=[rule("k", 4, 1, {"graph": 2, "one domain": 1})],
                                kernels=[kernel("f", 3, ["k"]), kernel("g", 1, ["k"])])
        summary = self.summary(one, two)
        self.assertEqual(summary["launches"], 7)
        self.assertEqual(len(summary["processes"]), 2)
        merged, = summary["rules"]
        self.assertEqual((merged["launches"], merged["kernels"]), (7, 2))
        self.assertEqual(merged["launch_outcomes"], {"applied": 3, "already_so": 0, "kept": 0,
                                                     "refused": {"graph": 3, "one domain": 1}})
        self.assertEqual([(k["name"], k["launches"]) for k in summary["kernels"]],
                         [("f", 6), ("g", 1)])

    def test_extents_are_widened(self):
        def shapes(grid):
            return {"grid_blocks": grid, "block_threads": [64, 64], "shared_memory": [0, 8]}
        paths = [self.write_report("a.json", 1, kernels=[kernel("f", 1, shapes=shapes([4, 8]))]),
                 self.write_report("b.json", 2, kernels=[kernel("f", 1)]),
                 self.write_report("c.json", 3, kernels=[kernel("f", 1, shapes=shapes([2, 6]))])]
        merged, = self.summary(*paths)["kernels"]
        self.assertEqual((merged["grid_blocks"], merged["shared_memory"]), ([2, 8], [0, 8]))

    def test_the_same_kernel_of_two_libraries_stays_two(self):
        path = self.write_report("a.json", kernels=[kernel("f", 1, library="a"),
                                                    kernel("f", 2, library="b")])
        self.assertEqual(len(self.summary(path)["kernels"]), 2)

    def test_the_same_process_counts_once(self):
        one = self.write_report("a.json", 1, kernels=[kernel("f", 3)])
        two = self.write_report("b.json", 1, kernels=[kernel("f", 3)])
        self.assertEqual(self.summary(one, one, two)["launches"], 3)

    def test_of_one_process_the_complete_report_counts(self):
        self.write_report("a.json", 1, kernels=[kernel("f", 2)], complete=False)
        self.write_report("b.json", 1, kernels=[kernel("f", 3)])
        self.assertEqual(self.summary(self.folder)["launches"], 3)

    def test_images_of_one_process_are_added(self):
        def image(number, start, **members):
            process = dict(report()["process"], start_ticks=7, image=number, end=None,
                           start=f"2026-01-01T00:00:00.{start:03}Z")
            return self.write_report(f"{number}.json", process=process, complete=False,
                                     kernels=[kernel("f", number)], **members)
        # Each computes the time of its start anew, and may come to another last digit.
        paths = [image(1, 999), image(2, 998), image(3, 999)]
        for order in (paths, paths[::-1], paths + paths):
            summary = self.summary(*order)
            self.assertEqual(summary["launches"], 6)
            self.assertEqual(sorted((p["image"], p["replaced"]) for p in summary["processes"]),
                             [(1, True), (2, True), (3, False)])
            text = self.command("report", *order).stdout
            self.assertIn("6 launches of 1 kernel in 1 process\n", text.replace(" (6 eager)", ""))
            self.assertEqual(text.count("went on as another program"), 2)
            self.assertEqual(text.count("did not end in good order"), 1)

    def test_a_folder_gives_all_reports_in_it_and_below(self):
        os.mkdir(self.path("sub"))
        self.write_report("a.json", 1, kernels=[kernel("f", 1)])
        self.write_report("sub/b.json.1", 2, kernels=[kernel("f", 2)])
        self.write("other.json", '{"format": "something else"}')
        self.write("notes.txt", "text")
        self.write("data.bin", b"\0\1\2")
        self.write(".hidden.json", "{")
        self.write("half.json.part", '{"format": "cudapo')
        self.assertEqual(self.summary(self.folder)["launches"], 3)

    def test_links_in_folders_are_not_followed(self):
        os.mkdir(self.path("reports"))
        os.mkdir(self.path("elsewhere"))
        self.write_report("reports/a.json", 1, kernels=[kernel("f", 1)])
        self.write_report("elsewhere/b.json", 2, kernels=[kernel("f", 2)])
        os.symlink("../elsewhere", self.path("reports/folder"))
        os.symlink("../elsewhere/b.json", self.path("reports/b.json"))
        self.assertEqual(self.summary(self.path("reports"))["launches"], 1)
        self.assertEqual(self.summary(self.path("reports/folder"))["launches"], 2)

    def test_the_document_of_a_job_is_read_back(self):
        job = {"format": "cudapolicy job", "schema": 1, "summary": {},
               "processes": [report(1, kernels=[kernel("f", 1)]),
                             report(2, kernels=[kernel("f", 2)])]}
        path = self.write("job.json", json.dumps(job))
        self.assertEqual(self.summary(path)["launches"], 3)


class Unmatched(Report):
    """Rules that matched nothing say why, as far as policy and kernels tell."""

    POLICY = """[policy]
version = 1
[kernel k]
{selectors}
priority = -1
"""

    def lines(self, selectors, *kernels, **members):
        policy = self.write("p.ini", self.POLICY.format(selectors=selectors))
        path = self.write_report("a.json", rules=[rule("k", line=3)], kernels=kernels, **members)
        result = self.command("report", "-p", policy, path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        text = result.stdout
        self.assertNotIn("rule   kernels", text)
        return text[text.index("[kernel k]"):].splitlines()

    def test_the_nearest_kernel_is_named(self):
        lines = self.lines("name = ncclDevKernal_*", kernel("ncclDevKernel_AllReduce", 1),
                           kernel("quite_another", 1))
        self.assertEqual(lines, ["[kernel k] in line 3 matched nothing: no kernel's name matches it",
                                 "  near: ncclDevKernel_AllReduce"])

    def test_what_stands_for_kernels_without_a_name_is_not_near(self):
        for pattern in ("(other)", "(*"):
            lines = self.lines(f"name = {pattern}", kernel("(others)", 9), kernel("(unknown)", 9))
            self.assertEqual(lines, [
                "[kernel k] in line 3 matched nothing: no kernel's name matches it"])

    def test_a_kernel_without_a_name_meets_only_rules_without_names(self):
        lines = self.lines("name = *", kernel("(unknown)", 9))
        self.assertEqual(len(lines), 1)
        self.assertIn("matched nothing: no kernel's name matches it", lines[0])
        policy = self.write("p.ini", self.POLICY.format(selectors="name = *"))
        path = self.write_report("a.json", kernels=[kernel("(unknown)", 9)])
        text = self.command("explain", "-p", policy, path).stdout
        self.assertIn("name: the driver gives no name for the kernel", text)

    def test_of_kernels_that_are_far_from_it_none_is_named(self):
        kernels = [kernel(name, 1) for name in (
            "gemm", "copy", "reduce", "at::native::vectorized_elementwise_kernel", "x",
            "ampere_sgemm_128x64_nn")]
        for pattern in ("ncclDevKernel_*", "*AllReduce*", "g", "scatter", "[f-j]", "flash::fwd"):
            lines = self.lines(f"name = {pattern}", *kernels)
            self.assertEqual(lines, ["[kernel k] in line 3 matched nothing: no kernel's name "
                                     "matches it, and none is near it"], pattern)

    def test_kernels_that_are_as_near_are_named_and_others_are_not(self):
        lines = self.lines("name = reduce_kernel_1", kernel("reduce_kernel_2", 1),
                           kernel("reduce_kernel_3", 1), kernel("reduce_kernels_44", 1),
                           kernel("copy_kernel_1", 1))
        self.assertEqual(lines[1:], ["  near: reduce_kernel_2", "  near: reduce_kernel_3",
                                     "  near: reduce_kernels_44"])
        lines = self.lines("name = redcue_*", kernel("reduce_a", 1), kernel("reads", 1))
        self.assertEqual(lines[1:], ["  near: reduce_a"])

    def test_a_form_that_would_have_matched_is_told_however_far_the_names_are(self):
        mangled = "_ZN2at6native4copyIfEEvPT_i"
        copy_kernel = dict(kernel("at::native::copy", 1), mangled=mangled)
        for pattern, form in (("*<float>*", "signature"), ("_Z*", "mangled")):
            lines = self.lines(f"name = {pattern}", copy_kernel)
            self.assertEqual(len(lines), 2)
            self.assertIn(f"with name_form = {form} it would match", lines[1])
            self.assertNotIn("near", lines[0])

    def test_many_rules_and_kernels_take_no_time_to_speak_of(self):
        policy = self.write("p.ini", "[policy]\nversion = 1\n" + "".join(
            f"[kernel r{i}]\nname = nothing_{i}_*\npriority = 0\n" for i in range(300)))
        path = self.write_report("a.json", rules=[rule(f"r{i}", line=i) for i in range(300)],
                                 kernels=[kernel(f"_Z{len('kernel') + 4}kernel{i}v", 1)
                                          for i in range(1000, 9000)])
        text = self.command("report", "-p", policy, path).stdout
        self.assertEqual(text.count("matched nothing"), 300)
        self.assertNotIn("near", text)

    def test_a_pattern_for_another_form_of_the_name_says_which(self):
        mangled = "_ZN2at6native4copyIfEEvPT_i"
        copy_kernel = dict(kernel("at::native::copy", 1), mangled=mangled)
        lines = self.lines("name = *copy<float>*", kernel("copy_float", 9), copy_kernel)
        self.assertEqual(lines[1:], ["  with name_form = signature it would match "
                                     "void at::native::copy<float>(float*, int)"])
        lines = self.lines("name = _ZN2at*", copy_kernel)
        self.assertEqual(lines[1], f"  with name_form = mangled it would match {mangled}")

    def test_another_selector_that_failed_is_named(self):
        shapes = {"grid_blocks": [8, 16], "block_threads": [64, 64], "shared_memory": [0, 0]}
        lines = self.lines("name = f\ngrid_blocks = 1..4", kernel("f", 1, shapes=shapes))
        self.assertEqual(lines, ["[kernel k] in line 3 matched nothing: it names f, but "
                                 "grid_blocks: 8..16 is not in 1..4"])

    def test_a_selector_that_a_report_does_not_tell_is_named(self):
        lines = self.lines("name = f\nrank = 3", kernel("f", 1))
        self.assertIn("it names f, but rank did not hold", lines[0])

    def test_rules_that_earlier_rules_hid_are_told(self):
        lines = self.lines("name = f", kernel("f", 1))
        self.assertIn("it matches f, but earlier rules decided all that it sets", lines[0])

    def test_a_rule_that_sets_nothing_is_told(self):
        policy = self.write("p.ini", "[policy]\nversion = 1\n[kernel k]\nname = f\n")
        path = self.write_report("a.json", rules=[rule("k", line=3)], kernels=[kernel("f", 1)])
        self.assertIn("it matches f, but sets nothing",
                      self.command("report", "-p", policy, path).stdout)

    def test_without_kernels_there_is_nothing_to_match(self):
        self.assertIn("no kernel was launched", self.lines("name = f")[0])

    def test_without_the_policy_it_is_asked_for(self):
        path = self.write_report("a.json", rules=[rule("k")], kernels=[kernel("f", 1)])
        self.assertIn("give it with -p", self.command("report", path).stdout)

    def test_the_recorded_policy_is_used_while_it_is_unchanged(self):
        policy = self.write("p.ini", self.POLICY.format(selectors="name = gemm"))
        import hashlib
        with open(policy, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()
        path = self.write_report("a.json", rules=[rule("k", line=3)], kernels=[kernel("gemn", 1)],
                                 facts={"policy": {"path": policy, "sha256": digest}})
        self.assertIn("  near: gemn", self.command("report", path).stdout)
        self.write("p.ini", self.POLICY.format(selectors="name = h"))
        self.assertIn("give it with -p", self.command("report", path).stdout)

    def test_json_has_the_reason_and_the_nearest(self):
        policy = self.write("p.ini", self.POLICY.format(selectors="name = gemm"))
        path = self.write_report("a.json", rules=[rule("k", line=3)], kernels=[kernel("gemn", 1)])
        unmatched, = self.summary("-p", policy, path)["unmatched_rules"]
        self.assertEqual((unmatched["name"], unmatched["line"]), ("k", 3))
        self.assertEqual(unmatched["nearest"],
                         [{"text": "gemn", "form": "name", "matches": False, "library": "app"}])


class BadInput(Report):
    def assert_failure(self, text, *arguments):
        result = self.command("report", *arguments)
        self.assertEqual(result.returncode, 1, result)
        self.assertIn(text, result.stderr)
        self.assertTrue(result.stderr.startswith("cudapolicy: "))
        return result

    def test_no_report_is_a_usage_error(self):
        self.assert_usage_error(self.command("report"), "no report given")

    def test_a_missing_file_is_a_failure(self):
        self.assert_failure("cannot read 'none.json': No such file", "none.json")

    def test_an_empty_folder_is_a_failure(self):
        self.assert_failure("no report there", self.folder)

    def test_files_that_are_no_reports_are_failures_when_named(self):
        for name, data in (("a.txt", "text"), ("empty", ""), ("b.json", '{"format": "x"}'),
                           ("c.json", "{}"), ("d.json", "[]")):
            self.assert_failure("not a report of cudapolicy", self.write(name, data))

    def test_counters_that_are_none_are_a_failure(self):
        self.assert_failure("a.counters", self.write("a.counters", b"\0" * 100))
        self.assert_failure("b.counters", self.write("b.counters", b"\x7fELF\0" + b"\xff" * 5000))

    def test_broken_json_is_a_failure_with_its_place(self):
        path = self.write("a.json", '{"format": "cudapolicy report",\n "x": }')
        self.assert_failure(f"{path}:2:", path)

    def test_a_report_of_another_version_is_a_failure(self):
        self.assert_failure("another version", self.write_report("a.json", schema=99))

    def test_a_wrong_policy_is_a_failure(self):
        path = self.write_report("a.json")
        result = self.command("report", "-p", self.write("p.ini", "[x]\n"), path)
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertIn("p.ini:1:", result.stderr)

    def test_the_others_are_printed_when_one_cannot_be_read(self):
        path = self.write_report("a.json", kernels=[kernel("f", 3)])
        result = self.assert_failure("none.json", "none.json", path)
        self.assertIn("3 launches", result.stdout)

    def test_members_of_a_wrong_type_do_no_harm(self):
        whole = report(1, rules=[rule("k", 1, 1, {"graph": 1})],
                       kernels=[kernel("f", 1, ["k"], shapes={"grid_blocks": [1, 2],
                                                              "block_threads": [1, 2],
                                                              "shared_memory": [1, 2]})],
                       streams=[{"library": "a", "kind": "created", "device": 0, "flags": 0,
                                 "priority": 0, "rule": None, "count": 1, "settings": []}],
                       notes=[{"severity": "x", "text": "y", "time": None, "count": 1}])
        places = []

        def walk(value, place):
            places.append(place)
            items = value.items() if isinstance(value, dict) else (
                enumerate(value) if isinstance(value, list) else ())
            for key, item in items:
                walk(item, place + [key])

        walk(whole, [])
        for place in places[1:]:
            for wrong in (None, 3, -1, "text", [], [[]], {}, {"x": {}}, 1e300):
                document = copy.deepcopy(whole)
                target = document
                for key in place[:-1]:
                    target = target[key]
                target[place[-1]] = wrong
                path = self.write("wrong.json", json.dumps(document))
                for arguments in (["report", "--kernels", path], ["report", "--json", path]):
                    result = self.command(*arguments)
                    self.assertIn(result.returncode, (0, 1), (place, wrong, result))
                    self.assertNotIn("AddressSanitizer", result.stderr, (place, wrong))


if __name__ == "__main__":
    support.main()
