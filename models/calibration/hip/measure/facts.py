"""What the machine is: GPUs and links by microbench, the host by the kernel's files, versions by the tools."""
import json
import os
import pathlib
import platform as host_platform
import re
import subprocess

from .fault import OurFault, UserError
from .platforms import output
from .programs import ROOT


def of_gpus(microbench):
    """The machine line that microbench writes. Throws UserError where it finds no GPU."""
    try:
        done = subprocess.run([str(microbench), "--machine"], capture_output=True, encoding="utf-8", errors="replace",
                              timeout=180, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        raise UserError("the GPUs do not answer: microbench --machine did not end in 180 s") from None
    except OSError as error:
        raise UserError(f"{microbench}: {error.strerror}") from None
    said = done.stderr.strip().splitlines()
    if done.returncode == 2:
        raise UserError(said[-1] if said else "no GPU")
    try:
        facts = json.loads(done.stdout)
        if done.returncode == 0 and facts["kind"] == "machine":
            return {**facts, "command": "microbench --machine"}
    except (ValueError, KeyError, TypeError):
        pass
    raise OurFault(f"microbench --machine failed: {said[-1] if said else 'no facts'}")


def first_match(path, pattern):
    try:
        found = re.search(pattern, pathlib.Path(path).read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return None
    return found[1].strip() if found else None


def text_in(path):
    try:
        return path.read_text().strip()
    except OSError:
        return None


def of_host(facts):
    """CPU, memory, system, and how each GPU sits on its bus."""
    memory = first_match("/proc/meminfo", r"^MemTotal:\s+(\d+) kB")
    slots = []
    for address in facts.get("pci_addresses", []):
        device = pathlib.Path("/sys/bus/pci/devices", address.lower())
        slots.append({"pci_address": address, **{name: text_in(device / name) for name in (
            "max_link_speed", "max_link_width", "numa_node")}})
    return {"cpu": first_match("/proc/cpuinfo", r"^model name\s*: (.*)$"), "cores": os.cpu_count(),
            "memory_GiB": round(int(memory) / 2 ** 20, 1) if memory else None, "kernel": host_platform.release(),
            "system": first_match("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)'), "slots": slots}


def project():
    """{"commit": …, "changed": files that differ from it}, where this is a checkout."""
    commit = output("git", "-C", ROOT, "rev-parse", "HEAD")
    changed = output("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit.strip() if commit else None,
            "changed": [line[3:] for line in changed.splitlines()] if changed else []}


def versions(facts, platform):
    said = (output(platform.compiler, "--version") or "").splitlines() if platform else []
    compiler = [line.strip() for line in said if re.search(r"version|release", line)]
    return {"driver": facts.get("driver"), "driver_api": facts.get("driver_api"), "runtime": facts.get("runtime"),
            "gemm_library": facts.get("gemm_library"), "compiler": "; ".join(compiler) or None,
            "python": host_platform.python_version()}
