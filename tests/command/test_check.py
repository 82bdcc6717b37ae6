# SPDX-License-Identifier: Apache-2.0
"""cudapolicy check."""

import os

import support

WRONG = "[policy]\nversion = 1\n[kernel k]\nnmae = x\npriority = high\n"
WARNED = "[policy]\nversion = 1\n[kernel k]\nname = x\n"


class Check(support.Case):
    def test_a_right_policy_is_ok(self):
        path = self.write("p.ini", support.GOOD_POLICY)
        result = self.command("check", path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout, f"{path}: ok: 1 kernel and 0 stream rules, 0 warnings\n")

    def test_partitions_are_counted(self):
        path = self.write("p.ini", "[policy]\nversion = 1\n[partition side]\nsm_count = 16\n"
                          "[stream a]\nindex = 0\npartition = side\n"
                          "[stream b]\nindex = 1\nlocality_domain = 1\n")
        result = self.command("check", path)
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertEqual(result.stdout,
                         f"{path}: ok: 0 kernel and 2 stream rules, 2 partitions, 0 warnings\n")
        document = support.load_json(self.command("check", "--json", path).stdout)
        self.assertEqual(document["files"][0]["partitions"], 2)
        path = self.write("one.ini", "[policy]\nversion = 1\n[stream a]\nlocality_domain = 1\n")
        self.assertIn(" 1 stream rules, 1 partition, ", self.command("check", path).stdout)

    def test_every_mistake_is_printed_with_its_place(self):
        path = self.write("p.ini", WRONG)
        result = self.command("check", path)
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        lines = result.stdout.splitlines()
        self.assertRegex(lines[0], rf"^{path}:4:1: error: .*nmae.*name")
        self.assertRegex(lines[1], rf"^{path}:5:12: error: .*high")

    def test_a_warning_alone_is_no_failure(self):
        path = self.write("p.ini", WARNED)
        result = self.command("check", path)
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, rf"^{path}:3:\d+: warning: ")
        self.assertIn("0 stream rules, 1 warning\n", result.stdout)

    def test_werror_makes_a_warning_a_failure(self):
        path = self.write("p.ini", WARNED)
        self.assertEqual(self.command("check", "--werror", path).returncode, 1)
        path = self.write("good.ini", support.GOOD_POLICY)
        self.assertEqual(self.command("check", "--werror", path).returncode, 0)

    def test_quiet_prints_errors_only(self):
        path = self.write("p.ini", WARNED)
        result = self.command("check", "-q", path)
        self.assertEqual((result.returncode, result.stdout), (0, ""))
        path = self.write("wrong.ini", WARNED + WRONG.split("\n", 2)[2])
        result = self.command("check", "--quiet", path)
        self.assertEqual(result.returncode, 1)
        self.assertNotIn("warning", result.stdout)
        self.assertIn("error", result.stdout)

    def test_quiet_with_werror_shows_what_failed(self):
        path = self.write("p.ini", WARNED)
        result = self.command("check", "--quiet", "--werror", path)
        self.assertEqual(result.returncode, 1)
        self.assertIn("warning", result.stdout)

    def test_several_files_are_all_checked(self):
        good = self.write("good.ini", support.GOOD_POLICY)
        wrong = self.write("wrong.ini", WRONG)
        result = self.command("check", wrong, good)
        self.assertEqual(result.returncode, 1)
        self.assertIn(f"{wrong}:4:1: error", result.stdout)
        self.assertIn(f"{good}: ok", result.stdout)

    def test_standard_input_is_a_dash(self):
        result = self.command("check", "-", input=support.GOOD_POLICY)
        self.assertEqual(result.returncode, 0)
        result = self.command("check", "-", input=WRONG)
        self.assertEqual(result.returncode, 1)
        self.assertIn("<stdin>:4:1: error", result.stdout)

    def test_large_standard_input_is_refused_not_read_for_ever(self):
        with open("/dev/zero", "rb") as zeros:
            result = self.command("check", "-", stdin=zeros)
        self.assertEqual(result.returncode, 1)
        self.assertIn("<stdin>", result.stdout)

    def test_a_missing_file_is_a_failure_that_names_it(self):
        result = self.command("check", self.path("none.ini"))
        self.assertEqual(result.returncode, 1)
        self.assertIn("none.ini", result.stdout)
        self.assertIn("no such file", result.stdout)

    def test_a_folder_and_a_fifo_are_failures(self):
        fifo = self.path("fifo")
        os.mkfifo(fifo)
        for path in (self.folder, fifo):
            result = self.command("check", path)
            self.assertEqual(result.returncode, 1, path)
            self.assertIn(path, result.stdout)

    def test_json_has_files_and_diagnostics(self):
        good = self.write("good.ini", support.GOOD_POLICY)
        wrong = self.write("wrong.ini", WRONG)
        result = self.command("check", "--json", good, wrong)
        self.assertEqual((result.returncode, result.stderr), (1, ""))
        document = support.load_json(result.stdout)
        self.assertFalse(document["valid"])
        first, second = document["files"]
        self.assertEqual((first["file"], first["valid"], first["rules"]), (good, True, 1))
        self.assertEqual(first["diagnostics"], [])
        self.assertEqual((second["valid"], second["errors"]), (False, 2))
        self.assertEqual([(d["severity"], d["line"]) for d in second["diagnostics"]],
                         [("error", 4), ("error", 5)])

    def test_json_of_a_name_that_is_not_utf8_is_valid(self):
        name = b"\xff\x01.ini"
        with open(os.path.join(os.fsencode(self.folder), name), "w", encoding="ascii") as file:
            file.write(WRONG)
        result = self.command("check", "--json", os.path.join(os.fsencode(self.folder), name))
        document = support.load_json(result.stdout)
        self.assertIn("\\xff\\x01.ini", document["files"][0]["file"])

    def test_no_file_is_a_usage_error(self):
        self.assert_usage_error(self.command("check"), "no policy file given")


if __name__ == "__main__":
    support.main()
