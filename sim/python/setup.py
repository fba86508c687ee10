"""Builds the module with CMake and puts it, its engine and the configs into the wheel."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(overlap VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")).group(1)


class CMakeModule(build_ext):
    def build_extension(self, extension):
        tree = pathlib.Path(os.environ.get("OVERLAP_BUILD", ROOT / "build/wheel"))
        if not (tree / "CMakeCache.txt").exists():
            subprocess.run(["cmake", "--preset", "release", "-B", str(tree), "-DOVERLAP_TESTS=OFF",
                            f"-DPython3_EXECUTABLE={sys.executable}"], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", str(tree), "--target", "overlap_python"], check=True)
        package = pathlib.Path(self.get_ext_fullpath(extension.name)).parent
        package.mkdir(parents=True, exist_ok=True)
        for module in (*(tree / "python/overlap").glob("_overlap*.so"), tree / "overlap_simgrid.so"):
            shutil.copy(module, package)
        # Where find_beside_program() looks for them (sim/core/installation.hpp).
        shutil.copytree(ROOT / "configs", package / "share/overlap/configs", dirs_exist_ok=True)


setup(version=VERSION, ext_modules=[Extension("overlap._overlap", [])], cmdclass={"build_ext": CMakeModule})
