"""Which GPUs the machine has, and what compiles for them."""
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from .fault import UserError

KFD = pathlib.Path("/sys/class/kfd/kfd/topology/nodes")
QUERY = """#include <cstdio>
int main() {
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) return 1;
    for (int gpu = 0; gpu < count; ++gpu) {
        cudaDeviceProp properties;
        if (cudaGetDeviceProperties(&properties, gpu) != cudaSuccess) return 1;
        std::printf("%d.%d\\n", properties.major, properties.minor);
    }
}
"""


@dataclasses.dataclass(frozen=True)
class Platform:
    name: str  # "nvidia" or "amd"
    architectures: tuple  # "sm_90"; "gfx942"
    compiler: pathlib.Path


def output(*command, timeout=60):
    """Standard output, or None if the program is missing or fails."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, encoding="utf-8", errors="replace",
                              timeout=timeout, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


def gfx_name(version):
    """90402 is gfx942, 90010 is gfx90a."""
    return f"gfx{version // 10000}{version // 100 % 100:x}{version % 100:x}"


def amd_architectures():
    found = set()
    for path in KFD.glob("*/properties"):
        try:
            version = re.search(r"^gfx_target_version (\d+)$", path.read_text(), re.MULTILINE)
        except OSError:
            continue
        if version and int(version[1]) > 0:
            found.add(gfx_name(int(version[1])))
    if not found:
        found = set(re.findall(r"^\s*Name:\s+(gfx[0-9a-f]+)\s*$", output("rocminfo") or "", re.MULTILINE))
    return sorted(found)


def nvidia_architectures():
    listed = output("nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader") or ""
    found = set(re.findall(r"^\s*(\d+\.\d+)\s*$", listed, re.MULTILINE))
    if not found and list(pathlib.Path("/dev").glob("nvidia[0-9]*")):
        found = asked_by_a_program()
    return sorted("sm_" + capability.replace(".", "") for capability in found)


def asked_by_a_program():
    compiler = nvcc()
    if compiler is None:
        return set()
    with tempfile.TemporaryDirectory() as folder:
        source, program = pathlib.Path(folder, "query.cu"), pathlib.Path(folder, "query")
        source.write_text(QUERY)
        if output(compiler, source, "-o", program, timeout=300) is None:
            return set()
        return set((output(program) or "").split())


def python_folders():
    """Folders of Python packages, of this Python and of those on the PATH (a virtual environment may not be active)."""
    folders = [pathlib.Path(folder) for folder in sys.path if folder.endswith("-packages")]
    for bin_folder in os.environ.get("PATH", "").split(os.pathsep):
        folders += sorted(pathlib.Path(bin_folder).parent.glob("lib/python3*/*-packages"))
    return list(dict.fromkeys(folders))


def cuda_folders():
    """Folders that may hold CUDA's bin, include and lib, the first the best."""
    folders = [pathlib.Path(os.environ[name]) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    if found := shutil.which("nvcc"):
        folders += [pathlib.Path(found).parent.parent, pathlib.Path(found).resolve().parent.parent]
    folders.append(pathlib.Path("/usr/local/cuda"))
    folders += sorted(pathlib.Path("/usr/local").glob("cuda-*"), reverse=True) + sorted(pathlib.Path("/opt").glob("cuda*"))
    for packages in python_folders():
        folders += sorted(packages.glob("nvidia/cu1*"), reverse=True)
        folders += sorted(packages.glob("nvidia/cublas")) + sorted(packages.glob("nvidia/cuda_*"))
    return [folder for folder in dict.fromkeys(folders) if folder.is_dir()]


def nvcc():
    if found := shutil.which("nvcc"):
        return pathlib.Path(found)
    return next((folder / "bin" / "nvcc" for folder in cuda_folders() if (folder / "bin" / "nvcc").is_file()), None)


def hip_compiler():
    """hipcc of ROCm, or a clang++ that can compile HIP."""
    roots = [os.environ[name] for name in ("ROCM_PATH", "HIP_PATH") if os.environ.get(name)]
    roots += ["/opt/rocm"] + sorted(str(path) for path in pathlib.Path("/opt").glob("rocm-*"))
    for root in map(pathlib.Path, roots):
        if (root / "bin" / "hipcc").is_file():
            return root / "bin" / "hipcc"
    # Debian's hipcc 5.2 wants a clang of its own.
    for name in ["amdclang++"] + [f"clang++-{version}" for version in range(25, 16, -1)] + ["hipcc", "clang++"]:
        if found := shutil.which(name):
            return pathlib.Path(found)
    return None


def compiler_of(name):
    compiler = nvcc() if name == "nvidia" else hip_compiler()
    if compiler is None:
        raise UserError("no compiler for NVIDIA's GPUs: nvcc is neither on PATH nor in CUDA_HOME, /usr/local/cuda or Python's "
                        "nvidia packages" if name == "nvidia" else
                        "no compiler for AMD's GPUs: neither hipcc (on PATH, in ROCM_PATH or /opt/rocm) nor clang++ is there")
    return compiler


def find(architectures=None):
    """The platform of this machine's GPUs, or of the `architectures` that the user names. Throws UserError."""
    if architectures:
        wrong = [name for name in architectures if not re.fullmatch(r"sm_\d+[af]?|gfx[0-9a-f]+", name)]
        kinds = {name.startswith("sm_") for name in architectures}
        if wrong or len(kinds) != 1:
            raise UserError(f"--arch {','.join(architectures)}: allowed: those of one platform, such as sm_90 or gfx90a,gfx942")
        name = "nvidia" if kinds == {True} else "amd"
    elif architectures := nvidia_architectures():
        name = "nvidia"
    elif architectures := amd_architectures():
        name = "amd"
    else:
        raise UserError("no GPU: neither nvidia-smi nor /sys/class/kfd lists one")
    return Platform(name, tuple(architectures), compiler_of(name))
