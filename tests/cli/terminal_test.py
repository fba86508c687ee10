"""What people see: colours and widths of a terminal, and --quiet."""
import fcntl
import os
import re
import struct
import subprocess
import termios

from sim_case import SimTestCase


class Terminal(SimTestCase):
    """What is different where standard output is a terminal."""

    def on_terminal(self, *args, columns=200, **more):
        ours, theirs = os.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
        environment = {**{key: value for key, value in os.environ.items() if key != "NO_COLOR"}, "TERM": "xterm", **more}
        text = []
        with subprocess.Popen([os.environ["SIM"], *args], stdout=theirs, env=environment, cwd=self.folder) as process:
            os.close(theirs)
            try:
                while part := os.read(ours, 65536):
                    text.append(part)
            except OSError:  # the other side is closed
                pass
        os.close(ours)
        self.assertEqual(process.returncode, 0)
        return b"".join(text).decode().replace("\r\n", "\n")

    def test_colours_unless_asked_not_to(self):
        run = ["--topology", "mi300x_8", "--schedule", "ring_chunked"]
        timeless = lambda text: re.sub(r"simulated in .*", "", text)
        plain = self.output(*run)
        self.assertNotIn("\033", plain)
        coloured = self.on_terminal(*run)
        self.assertIn("\033[1mwhere the time was lost", coloured)
        self.assertEqual(timeless(re.sub(r"\033\[\d*m", "", coloured)), timeless(plain))
        self.assertIn("\033[1mlayer", self.on_terminal("model", "llama3_8b", "--topology", "h200_2", "--tokens", "512"))
        for variable in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertEqual(timeless(self.on_terminal(*run, **variable)), timeless(plain))

    def test_list_is_as_wide_as_the_terminal(self):
        widths = {}
        for columns in (70, 120, 250):
            lines = re.sub(r"\033\[\d*m", "", self.on_terminal("list", "schedules", columns=columns)).splitlines()
            widths[columns] = max(len(line) for line in lines)
            self.assertLessEqual(widths[columns], columns)
        self.assertEqual((widths[70], widths[120]), (70, 120))
        self.assertGreater(widths[250], 132)

    def test_quiet(self):
        """A run with a warning, and one with progress: only the result."""
        run = ["--topology", "mi300x_8", "--schedule", "hetero_fused_1d", "--what-if", "device.copy_kernel.launch_us=3x"]
        self.assertIn("warning", self.sim(*run).stderr)
        for args in (["--quiet", *run], [*run, "-q"]):
            done = self.sim(*args)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertIn("makespan", done.stdout)
        self.assertEqual(self.sim("-q", "--topology", "nowhere").stderr.count("\n"), 1)
