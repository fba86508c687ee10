"""What `cmake --install` and `cpack` take works elsewhere: program, library, manual page, completions, package."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest

from sim_case import ROOT, SimTestCase

BUILD = pathlib.Path(os.environ["SIM"]).resolve().parent
CONSUMER = {
    "CMakeLists.txt": """cmake_minimum_required(VERSION 3.25)
project(consumer CXX)
find_package(overlap 1.0 REQUIRED)
add_executable(consumer main.cpp)
target_link_libraries(consumer overlap::overlap)
target_compile_definitions(consumer PRIVATE CONFIGS="${overlap_CONFIGS}")
""",
    "main.cpp": """#include <iostream>

#include "sim/run/resolver.hpp"
#include "sim/run/run.hpp"

int main() {
    const overlap::ConfigFolder configs(CONFIGS);
    overlap::RunConfig config;
    config.topology = "h200_2";
    config.schedule = "serial";
    const overlap::RunResult result = overlap::run(overlap::resolve(config, configs));
    std::cout.precision(17);
    std::cout << overlap::to_microseconds(result.makespan) << '\\n';
}
"""}
CASE = ["--topology", "h200_2", "--schedule", "serial"]


def require_built():
    if not (BUILD / "sim.1").exists():
        raise unittest.SkipTest("the build tree has no manual page: only sim was built")


class InstallTestCase(SimTestCase):
    @classmethod
    def setUpClass(cls):
        require_built()

    def command(self, *words, **options):
        done = subprocess.run([str(word) for word in words], cwd=self.folder, capture_output=True, encoding="utf-8",
                              timeout=300, **options)
        self.assertEqual(done.returncode, 0, f"{words}: {done.stdout}{done.stderr}")
        return done.stdout

    def installed(self):
        """An installation that was moved after it was made."""
        self.command("cmake", "--install", BUILD, "--prefix", self.folder / "made")
        (self.folder / "made").rename(self.folder / "moved")
        return self.folder / "moved"


class Installation(InstallTestCase):
    def test_a_moved_one_has_all_it_needs(self):
        moved = self.installed()
        bare = {"PATH": "/usr/bin:/bin"}
        explained = self.command(moved / "bin/sim", "explain", "mi300x", env=bare)
        self.assertIn(f"({moved.resolve()}/share/overlap/configs/devices/mi300x.json)", explained)
        for engine in ("flow", "simgrid"):
            run = [*CASE, "--engine", engine, "--format", "json"]
            self.assertEqual(json.loads(self.command(moved / "bin/sim", *run, env=bare))["makespan_us"],
                             json.loads(self.output(*run))["makespan_us"])
        # A module in a folder that anybody may write to is not loaded.
        (self.folder / "moved/lib/overlap/overlap_simgrid.so").rename(self.folder / "overlap_simgrid.so")
        self.folder.chmod(0o777)
        done = subprocess.run([moved / "bin/sim", *CASE, "--engine", "simgrid"], env=bare, capture_output=True, encoding="utf-8")
        self.assertEqual(done.returncode, 2)
        self.assertRegex(done.stderr, r"\Asim: engine simgrid: lib/overlap/overlap_simgrid.so is not in the installation [^\n]+\n\Z")

        # The library, for programs that find it by CMake.
        for name, text in CONSUMER.items():
            self.file(name, text)
        self.command("cmake", "-G", "Ninja", "-S", ".", "-B", "consumer", f"-DCMAKE_PREFIX_PATH={moved}")
        self.command("ninja", "-C", "consumer")
        self.assertEqual(float(self.command("consumer/consumer", env=bare)), self.result(*CASE)["makespan_us"])

    def test_other_configs_can_be_named(self):
        done = subprocess.run([os.environ["SIM"], *CASE], env={"OVERLAP_CONFIGS": str(self.folder)}, capture_output=True,
                              encoding="utf-8")
        self.assertEqual(done.returncode, 2)
        self.assertIn(f"{self.folder}/workloads", done.stderr)


class Package(InstallTestCase):
    @unittest.skipUnless(all(map(shutil.which, ("dpkg-shlibdeps", "file", "cpack"))), "no dpkg-shlibdeps, file or cpack")
    def test_a_package_for_debian(self):
        self.command("cpack", "--config", BUILD / "CPackConfig.cmake", "-B", self.folder, "-D",
                     "CPACK_DEBIAN_COMPRESSION_TYPE=gzip")
        version = self.output("--version").strip()
        package = self.folder / f"overlap_{version}_{self.command('dpkg', '--print-architecture').strip()}.deb"
        fields = dict(line.split(": ", 1) for line in self.command("dpkg-deb", "-f", package).splitlines() if ": " in line)
        self.assertEqual((fields["Package"], fields["Version"]), ("overlap", version))
        for needed in ("libc6", "libstdc++6", "libsimgrid", "libcholmod", "libopenmpi", "libsqlite3-0", "libarchive13"):
            self.assertIn(needed, fields["Depends"])
        self.assertNotRegex(fields["Depends"], r"-dev\b|python")  # what runs it, not what builds with it
        content = self.command("dpkg-deb", "-c", package)
        for name in ("bin/sim", "lib/overlap/overlap_simgrid.so", "lib/overlap/overlap_ceres.so", "share/overlap/configs/devices/mi300x.json",
                     "share/man/man1/sim.1", "share/bash-completion/completions/sim", "share/doc/overlap/copyright",
                     "include/overlap/sim/run/run.hpp", "lib/cmake/overlap/overlap-config.cmake", "lib/liboverlap.a"):
            self.assertIn(f" ./usr/{name}\n", content)
        self.assertNotIn(str(ROOT), content)


class ManualPage(InstallTestCase):
    def test_has_every_command_and_flag(self):
        page = self.output("man").replace("\\-", "-")
        commands = re.findall(r"^\.SS sim (\S+)", page, re.M)
        self.assertIn("advise", commands)
        helped = re.search(r"Subcommands:\n(.*)", self.output("--help"), re.S).group(1)
        self.assertEqual(sorted(commands), sorted(re.findall(r"^  ([a-z]\S*)", helped, re.M)))
        for flag in re.findall(r"^ +(?:-., ?)?(--[a-z][\w-]*)", self.output("--help-all"), re.M):
            self.assertIn(flag, page)
        self.assertEqual(self.output("man"), (BUILD / "sim.1").read_text(encoding="utf-8"))


@unittest.skipUnless(shutil.which("bash"), "no bash")
class Completion(SimTestCase):
    def completed(self, *words):
        """What bash offers for the last of `words` after `sim`."""
        line = " ".join(["sim", *(f"'{word}'" for word in words)])
        script = f"""PATH={pathlib.Path(os.environ["SIM"]).parent}:$PATH
source <(sim completion bash)
COMP_WORDS=({line}); COMP_CWORD={len(words)}; _sim 2>/dev/null; printf '%s\\n' "${{COMPREPLY[@]}}" """
        done = subprocess.run(["bash", "--norc", "-c", script], cwd=self.folder, capture_output=True, encoding="utf-8",
                              timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.split()

    def names(self, kind):
        return re.findall(r"^  (\S+)", self.output("list", kind), re.M)

    def test_commands_flags_and_names(self):
        self.assertEqual(self.completed("adv"), ["advise"])
        self.assertNotIn("complete", self.completed(""))
        self.assertEqual(self.completed("--topol"), ["--topology"])
        self.assertEqual(self.completed("advise", "--form"), ["--format"])
        self.assertEqual(self.completed("advise", "--format", ""), ["text", "json", "csv"])
        self.assertEqual(self.completed("--topology", ""), self.names("topologies"))
        self.assertEqual(self.completed("--topology", "mi300x_8", "--schedule", "ring_ch"), ["ring_chunked"])
        self.assertEqual(self.completed("--workload", ""), self.names("workloads"))
        self.assertEqual(self.completed("model", ""), self.names("models"))
        self.assertEqual(self.completed("sensitivity", "--schedules", "serial,ring_ch"), ["serial,ring_chunked"])
        self.assertEqual(self.completed("--topology", "=", "torus_4x4"), ["torus_4x4"])  # as bash splits --topology=torus_4x4
        self.assertEqual(self.completed("help", "swe"), ["sweep"])
        self.assertEqual(self.completed("compare", "x"), [])  # files, by bash

    def test_other_shells_ask_the_program_too(self):
        for shell in ("zsh", "fish"):
            self.assertIn("complete --", self.output("completion", shell))
        self.assert_refused(["completion", "csh"], "csh")

    def test_every_table_names_flags_that_exist(self):
        table = (ROOT / "sim/commands/completion.cpp").read_text(encoding="utf-8")
        names = re.findall(r'^    \{"(--\S+|\w+ \w+)",', table, re.M)
        page = self.output("man").replace("\\-", "-")
        self.assertGreater(len(names), 10)
        for name in names:
            command, _, argument = name.rpartition(" ")
            part = page.split(f".SS sim {command}\n")[1].split(".SS")[0] if command else page
            self.assertIn(f"\\fB{argument}\\fR", part)


class Container(unittest.TestCase):
    def test_what_it_copies_builds(self):
        copied = [line.split()[1:-1] for line in (ROOT / "scripts/Containerfile").read_text(encoding="utf-8").splitlines()
                  if line.startswith("COPY ") and not line.startswith("COPY --from")]
        names = {name for line in copied for name in line}
        self.assertTrue(all((ROOT / name).exists() for name in names))
        cmake = (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
        used = {name for name in re.findall(r"^\s*(?:add_subdirectory\(|include\()?(\w+)/", cmake, re.M) if (ROOT / name).is_dir()}
        self.assertGreaterEqual(names, used | {"CMakeLists.txt", "CMakePresets.json", "configs"})
