"""Builds microbench and replay, by all cores, where there is no CMake. What is unchanged is not built again."""
import concurrent.futures
import hashlib
import os
import pathlib
import re
import subprocess

from . import platforms
from .fault import OurFault, UserError

HIP = pathlib.Path(__file__).resolve().parent.parent
ROOT = HIP.parents[2]
DEBIAN_BITCODE = pathlib.Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")


def nvidia_flags(platform):
    """(flags to compile, flags to link)."""
    folders = platforms.cuda_folders()
    includes = [folder / "include" for folder in folders if (folder / "include" / "cublasLt.h").is_file()][:1]
    if not includes and not pathlib.Path("/usr/include/cublasLt.h").is_file():
        raise UserError("no cublasLt.h: neither in the CUDA toolkit nor in Python's nvidia packages")
    target = []
    for architecture in platform.architectures:
        target += ["-gencode", f"arch={architecture.replace('sm', 'compute')},code={architecture}"]
    libraries = [library for folder in folders for name in ("lib64", "lib") if (library := folder / name).is_dir()]
    blas = next((path for folder in libraries for pattern in ("libcublasLt.so", "libcublasLt.so.*")
                 for path in sorted(folder.glob(pattern))), None)
    link = [flag for folder in libraries for flag in (f"-L{folder}", "-Xlinker", f"-rpath={folder}")]
    # Python's packages have no libcublasLt.so without a version.
    link += ["-Xlinker", str(blas)] if blas else ["-lcublasLt"]
    if not any((folder / "libcudart_static.a").is_file() for folder in libraries):
        runtime = next((path for folder in libraries for path in sorted(folder.glob("libcudart.so*"))), None)
        link += ["--cudart=none", "-Xlinker", str(runtime)] if runtime else []
    return target + [f"-I{folder}" for folder in includes] + ["-x", "cu"], target + link + ["-ldl"]


def amd_flags(platform, folder):
    flags = [f"--offload-arch={architecture}" for architecture in platform.architectures]
    compiler = platform.compiler.name
    if compiler.startswith("clang") and DEBIAN_BITCODE.is_dir():
        # Debian's device libraries end at gfx940, whose file serves gfx942 and gfx950, too.
        links = folder / "bitcode"
        links.mkdir(parents=True, exist_ok=True)
        for file in DEBIAN_BITCODE.glob("*.bc"):
            link_once(links / file.name, file)
        for architecture in platform.architectures:
            version = DEBIAN_BITCODE / f"oclc_isa_version_{architecture[3:]}.bc"
            if architecture.startswith("gfx9") and not version.is_file():
                link_once(links / version.name, DEBIAN_BITCODE / "oclc_isa_version_940.bc")
        flags.append(f"--hip-device-lib-path={links}")
    hip_link = [] if compiler == "hipcc" else ["--hip-link"]
    root = platform.compiler.resolve().parent.parent
    libraries = [f"-L{library}" for library in (root / "lib", pathlib.Path("/opt/rocm/lib")) if library.is_dir()]
    paths = [f"-Wl,-rpath,{flag[2:]}" for flag in libraries]
    return flags + ["-x", "hip"], flags + hip_link + libraries + paths + ["-lamdhip64", "-ldl"]


def link_once(link, target):
    if not link.is_symlink():
        link.symlink_to(target)


def sources():
    """By program, with the files that both share."""
    shared = [path for path in sorted(HIP.glob("*.cpp")) if path.name != "microbench.cpp"]
    return {"microbench": shared + [HIP / "microbench.cpp"], "replay": shared + sorted(HIP.glob("replay/*.cpp"))}


def digest_of(*parts):
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, pathlib.Path) else str(part).encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()[:24]


def run(command, log):
    try:
        done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, encoding="utf-8", errors="replace")
    except OSError as error:
        raise UserError(f"{command[0]}: {error.strerror}") from None
    if done.returncode == 0:
        return
    log.write_text(" ".join(str(word) for word in command) + "\n" + done.stdout)
    errors = [line for line in done.stdout.splitlines() if re.search(r"error|fatal", line)] or done.stdout.splitlines()[-1:]
    raise OurFault(f"the build failed: {errors[0].strip() if errors else command[0]} (all of it: {log})")


def build(platform, folder, say, cores=None):
    """{"microbench": path, "replay": path}, built in `folder`. Throws OurFault with the first error of the compiler."""
    folder.mkdir(parents=True, exist_ok=True)
    compile_flags, link_flags = nvidia_flags(platform) if platform.name == "nvidia" else amd_flags(platform, folder)
    compile_command = [platform.compiler, *compile_flags, "-std=c++20", "-O2", f"-I{ROOT}", "-c"]
    version = platforms.output(platform.compiler, "--version") or ""
    headers = sorted(HIP.glob("*.hpp")) + sorted(HIP.glob("replay/*.hpp"))
    common = digest_of(version, " ".join(map(str, compile_command)), *headers)
    objects = {source: folder / f"{source.stem}-{digest_of(common, source)}.o"
               for files in sources().values() for source in files}
    programs = {name: folder / f"{name}-{digest_of(' '.join(link_flags), *[objects[file].name for file in files])}"
                for name, files in sources().items()}
    if all(program.is_file() for program in programs.values()):
        return programs
    # The longest first.
    missing = sorted((source for source in objects if not objects[source].is_file()),
                     key=lambda source: -source.stat().st_size)
    with concurrent.futures.ThreadPoolExecutor(cores or os.cpu_count() or 1) as pool:
        def compile_one(source):
            part = objects[source].with_suffix(f".{os.getpid()}.part.o")
            run([*compile_command, source, "-o", part], folder / "build.log")
            part.rename(objects[source])
        for count, _ in enumerate(pool.map(compile_one, missing), 1):
            say(f"building: {count} of {len(missing)} files compiled by {platform.compiler.name}")
    for name, files in sources().items():
        part = programs[name].with_suffix(f".{os.getpid()}.part")
        run([platform.compiler, *[objects[file] for file in files], *link_flags, "-o", part], folder / "build.log")
        part.rename(programs[name])
    return programs


def build_folder(platform, out):
    """build/measure of this repository, or a folder in OUT where that can't be written."""
    name = "-".join([platform.name, *platform.architectures])
    here = ROOT / "build" / "measure" / name
    try:
        here.mkdir(parents=True, exist_ok=True)
        (here / f".{os.getpid()}").touch()
        (here / f".{os.getpid()}").unlink()
        return here
    except OSError:
        return out / "build" / name
