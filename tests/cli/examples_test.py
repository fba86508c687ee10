"""configs/examples: each is short, names its files, and shows pictures that its commands draw today. Their commands are run by
readme_test.py, as those of every README are; the Python programs by python_test.py."""
import re
import shutil
import tempfile
import unittest

from readme_marks import ROOT, VALUES, Shell, commands

EXAMPLES = ROOT / "configs" / "examples"


def texts_of(picture):
    """What an SVG says, in the order of its lines: figures and names, not where they stand, which gnuplot's version decides."""
    return re.findall(r"<text>([^<]+)</text>", picture.read_text(encoding="utf-8"))


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folders = sorted(path for path in EXAMPLES.iterdir() if path.is_dir())
        cls.readmes = {folder: (folder / "README.md").read_text(encoding="utf-8") for folder in cls.folders}

    def test_they_are_numbered_and_listed(self):
        self.assertEqual([int(folder.name[:2]) for folder in self.folders], list(range(1, 10)))
        listed = re.findall(r"^\| \[(\w+)\]\((\w+)/README.md\) \|", (EXAMPLES / "README.md").read_text(encoding="utf-8"), re.M)
        self.assertEqual(listed, [(folder.name, folder.name) for folder in self.folders])

    def test_each_is_short_and_has_commands(self):
        for folder, text in self.readmes.items():
            with self.subTest(example=folder.name):
                lines = [line for line in VALUES.sub("", text).splitlines() if line]
                self.assertLessEqual(len(lines), 14)
                self.assertTrue(text.startswith(f"# {folder.name[:2]}: "))
                programs = list(folder.glob("*.py"))
                self.assertTrue(programs or len(commands(text)) >= 2)
                self.assertFalse([line for line, long in commands(text) if long])

    def test_each_names_its_files(self):
        named = 0
        for folder, text in self.readmes.items():
            for path in folder.iterdir():
                with self.subTest(file=path.relative_to(ROOT)):
                    self.assertTrue(path.name == "README.md" or path.name in text)
                named += 1
        self.assertGreater(named, len(self.folders))

    @unittest.skipIf(shutil.which("gnuplot") is None, "gnuplot is not installed")
    def test_pictures_are_what_the_commands_draw(self):
        drawn = 0
        for folder, text in self.readmes.items():
            for picture in folder.glob("*.svg"):
                with self.subTest(picture=picture.relative_to(ROOT)), tempfile.TemporaryDirectory() as name:
                    shell = Shell(name)
                    for command, _ in commands(text):
                        shell.checked(command)
                        if picture.name in command:
                            break
                    self.assertTrue(texts_of(picture))
                    self.assertEqual(texts_of(picture), texts_of(shell.folder / picture.name))
                drawn += 1
        self.assertGreaterEqual(drawn, 2)
