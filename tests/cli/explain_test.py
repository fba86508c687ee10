"""`sim explain` knows every word that a report prints, by the definitions of sim/README.md."""
import re

from sim_case import ROOT, SimTestCase


class Explain(SimTestCase):
    RUNS = [["--topology", "mi300x_8", "--schedule", "ring_chunked"], ["--topology", "h200_8", "--schedule", "serial"],
            ["--topology", "h200_2", "--schedule", "async_tp", "--host", "pytorch_eager", "--steady"],
            ["--topology", "h200_4", "--schedule", "hetero_fused_1d", "--workload", "llama3_70b_down_forward", "--seeds", "3"],
            ["--topology", "mi300x_8", "--schedule", "hetero_fused_1d", "--workload", "llama3_70b_mlp_layer"]]
    BASES = ("measured", "fitted", "published", "derived", "estimate")

    def words(self, text):
        """Labels, names of numbers and losses, keys of parameters, and kinds of prices in a report."""
        found = set()
        head, *sections = text.split("\n\n")
        for line in head.splitlines()[1:]:
            found.update(re.findall(r"^[a-zA-Z]\S*(?: \S+)*(?=  )|^\w{10}(?= )", line))
            found.update(re.findall(r"\b(\w+)=", line))
            found.update(word for word in re.findall(r"\w+", line) if word in self.BASES or word.endswith("_first"))
        for section in sections:
            if section.startswith("GPU 0"):
                found.update(line[:11].strip() for line in section.splitlines()[1:] if line[0] != " ")
                continue
            for line in section.splitlines():
                if line.startswith("utilisation"):
                    found.update(re.split(r" +[\d.]+ %(?: +|$)", line.removeprefix("utilisation (mean)").strip()))
                    found.add("utilisation (mean)")
                elif line.startswith("where the time"):
                    found.add(line.split(",")[0])
                elif match := re.match(r" *(\S+(?: \S+)*) {2,}-?[\d.]|^(next) ", line):
                    found.add(match[1] or match[2])
        return found - {""}

    def test_every_word_of_a_report_is_explained(self):
        words = set()
        for run in self.RUNS:
            words |= self.words(self.sim(*run).stdout)
        # Of each part of a report some, so that the test looks where it should.
        for word in ("confidence", "makespan", "exposed communication", "pattern", "fill_drain", "power", "host", "chunks",
                     "fitted", "HBM", "transfers", "makespan - ideal", "GEMM alone", "computation alone", "engine", "energy"):
            self.assertIn(word, words)
        for word in sorted(words):
            with self.subTest(word=word):
                text = self.output("explain", *word.split())
                self.assertGreater(len(text.splitlines()), 1)

    def test_definitions_are_those_of_the_readme(self):
        readme = (ROOT / "sim" / "README.md").read_text(encoding="utf-8")
        for name, part in (("regret", "time of the chosen schedule over time of the best schedule, minus 1"),
                           ("exposed_comm_us", "takes part in a transfer or a reduction and computes nothing"), ("DIL", "an output, never an input")):
            self.assertIn(part, readme)
            self.assertIn(part, self.output("explain", name))
        self.assert_refused(["explain", "dekomposition"], "did you mean 'decomposition'?")
