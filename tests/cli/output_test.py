"""What `--trace` and the other flags that name an output may name, and what of it is kept."""
import errno
import json
import os
import socket
import stat
import subprocess
import threading

from sim_case import PAIR, SimTestCase, without_command

RUN = [*PAIR, "--format", "csv"]


class Outputs(SimTestCase):
    def setUp(self):
        super().setUp()
        self.output(*RUN, "--trace", "expected.json")
        self.expected = without_command((self.folder / "expected.json").read_bytes())
        self.assertIn(b"traceEvents", self.expected)

    def trace(self, name):
        """Runs into `name`; what it leads to must have the whole trace, and nothing else may be new but what it leads to."""
        before = set(self.files())
        self.output(*RUN, "--trace", name)
        self.assertEqual(without_command((self.folder / name).read_bytes()), self.expected)
        target = os.path.relpath(os.path.realpath(self.folder / name), os.path.realpath(self.folder))
        self.assertEqual(set(self.files()) - {target}, before - {target})

    def read_all(self, terminal, seen):
        """Until the other side is closed, which a terminal says by EIO."""
        try:
            while True:
                seen.append(os.read(terminal, 65536))
        except OSError as error:
            self.assertEqual(error.errno, errno.EIO)

    def test_links_stay(self):
        (self.folder / "in").mkdir()
        (self.folder / "in" / "target").write_text("old")
        links = {"link": "in/target", "absolute": str(self.folder / "in" / "target"), "twice": "link", "new": "in/made",
                 "in/up": "../made_above"}
        for name, target in links.items():
            (self.folder / name).symlink_to(target)
            self.trace(name)
            self.assertEqual(os.readlink(self.folder / name), target)
        (self.folder / "circle").symlink_to("circle")
        self.assert_refused([*RUN, "--trace", "circle"], "circle: cannot be written")

    def test_no_name_beside_it_is_touched(self):
        """A user's own OUT.part, and one that somebody planted."""
        (self.folder / "precious").write_text("precious")
        (self.folder / "out.json.part").symlink_to("precious")
        (self.folder / "own.json.part").write_text("own")
        self.trace("out.json")
        self.trace("own.json")
        self.assertEqual((self.folder / "precious").read_text(), "precious")
        self.assertTrue((self.folder / "out.json.part").is_symlink())
        self.assertEqual((self.folder / "own.json.part").read_text(), "own")

    def test_mode_stays(self):
        for mode in (0o600, 0o664, 0o755):
            path = self.folder / f"mode_{mode:o}"
            path.write_text("old")
            path.chmod(mode)
            self.trace(path.name)
            self.assertEqual(stat.S_IMODE(path.stat().st_mode), mode)
        umask = os.umask(0o027)
        try:
            self.trace("fresh")
        finally:
            os.umask(umask)
        self.assertEqual(stat.S_IMODE((self.folder / "fresh").stat().st_mode), 0o640)

    def test_pipes_and_devices_are_written_into(self):
        os.mkfifo(self.folder / "pipe")
        got = []
        reader = threading.Thread(target=lambda: got.append((self.folder / "pipe").read_bytes()), daemon=True)
        reader.start()
        self.output(*RUN, "--trace", "pipe")
        reader.join(30)
        self.assertEqual([without_command(one) for one in got], [self.expected])
        self.assertTrue(stat.S_ISFIFO((self.folder / "pipe").stat().st_mode))

        main, terminal = os.openpty()  # a character device that needs no root
        name = os.ttyname(terminal)
        inode = os.stat(name).st_ino
        seen = []
        reader = threading.Thread(target=lambda: self.read_all(main, seen), daemon=True)
        reader.start()
        self.output(*RUN, "--trace", name)
        self.assertEqual(os.stat(name).st_ino, inode)
        self.assertTrue(stat.S_ISCHR(os.stat(name).st_mode))
        os.close(terminal)
        reader.join(30)
        self.assertEqual(without_command(b"".join(seen).replace(b"\r\n", b"\n")), self.expected)
        os.close(main)

    def test_standard_output(self):
        """A pipe, or the file that the shell opened: the trace first, then the result."""
        result = self.output(*RUN)
        whole = self.output(*RUN, "--trace", "/dev/stdout").encode()
        self.assertTrue(without_command(whole).startswith(self.expected))
        self.assertEqual(whole.count(b"\n"), self.expected.count(b"\n") + result.count("\n"))
        with open(self.folder / "out", "wb") as file:
            file.write(b"first\n")
            file.flush()
            subprocess.run([os.environ["SIM"], *RUN, "--trace", "/dev/stdout"], cwd=self.folder, stdout=file, check=True)
        written = (self.folder / "out").read_bytes()
        self.assertTrue(without_command(written).startswith(b"first\n" + self.expected))
        self.assertEqual(written.count(b"\n"), whole.count(b"\n") + 1)

    def test_what_is_no_file(self):
        (self.folder / "folder").mkdir()
        self.assert_refused([*RUN, "--trace", "folder"], "folder: is a directory")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(self.folder / "socket"))
            self.assert_refused([*RUN, "--trace", "socket"], "socket: is a socket")
        self.assert_refused([*RUN, "--trace", "no/trace.json"], "no/trace.json: cannot be written", "folder no is missing")
        self.assert_refused([*RUN, "--trace", "folder/"], "is a directory")

    def test_two_outputs_of_one_name(self):
        (self.folder / "link").symlink_to("same")
        model = ["model", "llama3_8b", "--topology", "h200_2", "--tokens", "512"]
        for args in ([*PAIR, "--trace", "same", "--graph", "./same"], [*PAIR, "--trace", "same", "--graph", "link"],
                     [*model, "--write", "same", "--html", "same"], ["import", "expected.json", "--out", "same", "--out-scenario", "same"]):
            self.assert_refused(args, "is named for two outputs")
        self.assert_refused(["import", "expected.json", "--out", "expected.json"], "expected.json: is an input")

    def test_a_full_device(self):
        """Nothing is printed, since the trace comes first."""
        self.assert_refused([*RUN, "--trace", "/dev/full"], "/dev/full: cannot be written: No space left on device")

    def test_every_output_is_refused_before_work(self):
        (self.folder / "taken").mkdir()
        self.file("trace.json", json.dumps({"traceEvents": []}))
        for args in (["--graph", "taken", *PAIR], ["import", "trace.json", "--out", "taken"]):
            self.assert_refused(args, "taken: is a directory")
