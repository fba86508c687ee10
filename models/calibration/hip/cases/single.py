"""Single cases of a list: which they are, how much memory they need, and whether a machine can run them."""
import itertools

# Keys that a list may give or leave out, with microbench's own values: the same case has one form.
GIVEN = {"agent": "dma", "transfer": "pull", "pattern": "pair", "chunks": "1", "call": "peer", "enqueue": "lanes",
         "detail": "0", "to": "packed", "first": "both", "sizes": "equal", "priority": "normal", "everywhere": "0", "operation": "copy",
         "dtype": "bf16", "beta": "0", "units": "0", "weights": "warm", "gpu": "0", "gpus": "2", "peers": "1", "work": "gemm"}
OTHER = {"memory": {"operation": "read"}, "sustained": {"gpus": "1"}, "energy": {"gpus": "1", "work": "idle"}}
SHIFTS = {"KiB": 10, "MiB": 20, "GiB": 30}
ELEMENT = {"bf16": 2, "fp16": 2, "fp8": 1}
COPIES_BESIDE = 64 << 20  # default size of a copy beside a GEMM


def singles(lines):
    """(kind, {key: value}) of every case of the lines, each once, in their order."""
    seen = set()
    for line in lines:
        kind, *words = line.split("#")[0].split() or [None]
        if kind is None:
            continue
        given = [word.split("=") for word in words]
        for values in itertools.product(*(value.split(",") for _, value in given)):
            keys = {key: value for (key, _), value in zip(given, values)
                    if value != {**GIVEN, **OTHER.get(kind, {})}.get(key)}
            identity = (kind, frozenset(keys.items()))
            if identity not in seen:
                seen.add(identity)
                yield kind, keys


def text(kind, keys):
    return " ".join([kind] + [f"{key}={value}" for key, value in keys.items()])


def number(keys, key, otherwise=0):
    word = keys.get(key)
    if word is None:
        return otherwise
    return int(word[:-3]) << SHIFTS[word[-3:]] if word[-3:] in SHIFTS else int(word)


def operand_bytes(m, n, k, element):
    """A, B and C, in as many sets as evict each other from a cache (sets_of in gemm_operands.cpp)."""
    return sum(size * min(64, max(1, (320 << 20) // size)) for size in (m * k * element, k * n * element, m * n * 2))


def gpus(kind, keys):
    """GPUs that the case uses, or needs to see."""
    beside = keys.get("beside", "")
    if kind == "gemm":
        return number(keys, "gpu") + 1
    if kind == "peer_copy":
        return number(keys, "gpus", 2)
    if kind in ("sustained", "energy"):
        return number(keys, "gpus", 1)
    if kind == "interference":
        return 1 if beside.startswith("local") and "everywhere" not in keys else number(keys, "peers", 1) + 1
    if kind in ("late_copy", "first_served", "residency"):
        return 1 if beside.startswith("local") or beside == "hold" else 2
    if kind == "latency":
        return 2 if keys["what"] in ("gpu_hop", "flag_hop") or "dma" in keys["what"] else 1
    return 1


def memory_bytes(kind, keys):
    """Memory of a GPU that the case takes, roughly and not less than it does."""
    size = number(keys, "size", COPIES_BESIDE if kind == "interference" else 0)
    spread = number(keys, "pitch") / number(keys, "row", 1) if "row" in keys else 1
    copies = size * spread * number(keys, "chunks", 1)
    bytes_needed = 0
    if kind == "peer_copy":
        bytes_needed = copies * number(keys, "gpus", 2)
    elif kind == "memory":
        bytes_needed = size * (number(keys, "parts", 2) + 1)
    elif size:
        bytes_needed = copies * 2 * (number(keys, "peers", 1) + 1)
    if number(keys, "m") or kind in ("gemm", "sustained") or number(keys, "gemms"):
        m, n, k = (number(keys, key, other) for key, other in (("m", 8192), ("n", 8192), ("k", 8192)))
        bytes_needed += operand_bytes(m, n, k, ELEMENT[keys.get("dtype", "bf16")])
    return bytes_needed


def runs_on(machine, arena_GiB, kind, keys):
    """Whether the machine has the GPUs, the units and the memory."""
    return (gpus(kind, keys) <= machine.gpus and number(keys, "blocks") <= machine.units
            and memory_bytes(kind, keys) <= arena_GiB * 2 ** 30 and number(keys, "peers", 1) >= 1
            and (kind != "peer_copy" or gpus(kind, keys) >= 2))
