"""Algorithms of MSCCL (XML) as plans.

Format as https://github.com/microsoft/msccl-tools writes it; files are in https://github.com/Azure/msccl-scheduler. A thread block is
a stream; it copies on one compute unit, within one kernel.
"""
import xml.etree.ElementTree as xml
from typing import Any, Dict, List, Set, Tuple

from ._overlap import UserError
from ._plan import Plan

SIDE_STREAMS = 64  # as many as a plan may name
SENDS, RECEIVES, REDUCES = {"s", "rcs", "rrs", "rrcs"}, {"r", "rcs", "rrc", "rrs", "rrcs"}, {"rrc", "rrs", "rrcs"}
LOCAL = {"cpy", "re", "nop"}
PACKET_OF_LL = 2  # bytes sent a byte of data: a flag beside each 4 bytes (NCCL's and MSCCL++'s LL)
WIRE = {"Simple": 1, "LL": PACKET_OF_LL, "LL128": 128 / 120}  # LL128: 8 of 128 bytes are a flag


class Blocks:
    """A plan of thread blocks: streams for them, and one task after another."""

    def __init__(self, name: str, gpus: int, blocks: int, chunk_bytes: float, description: str):
        if blocks > gpus + SIDE_STREAMS:
            raise UserError(f"{name}: has {blocks} thread blocks on a GPU, expected at most {gpus + SIDE_STREAMS}")
        self.names = [f"transfer {i}" for i in range(gpus)] + [f"block {i}" for i in range(gpus, blocks)]
        self.plan = Plan(gpus, streams=self.names[gpus:blocks], description=description)
        self.chunk_bytes = chunk_bytes
        self._where: List[Tuple[int, int]] = []  # by task: GPU and block
        self._begun: Set[Tuple[int, int]] = set()

    def _place(self, gpu, block, after):
        """Of a new task: its stream, and what it waits for that is not before it there anyway."""
        self._where.append((gpu, block))
        self._begun.add((gpu, block))
        return {"stream": self.names[block], "after": [task for task in after if self._where[task] != (gpu, block)] or None}

    def copy(self, src, dst, block, bytes, after, pull=False, dma=False):
        gpu = dst if pull else src
        how = {"agent": "dma"} if dma else {"agent": "cu", "copy_cus": 1, "prelaunched": (gpu, block) in self._begun or None}
        return self.plan.copy(src, dst, bytes, transfer="pull" if pull else "push", **how, **self._place(gpu, block, after))

    def local(self, kind, gpu, block, bytes, after, parts=2):
        place = self._place(gpu, block, after)
        return self.plan.local_copy(gpu, bytes, **place) if kind == "copy" else self.plan.reduce(gpu, bytes, parts, **place)


def read_msccl(path: Any, operand_bytes: float) -> Plan:
    """The plan of an algorithm in MSCCL's XML, for simulate() or `sim --plan`.

    operand_bytes: what nchunksperloop chunks make up. Returns a Plan. Protocols LL and LL128 send flags beside the data.
    Raises UserError.

    >>> simulate(read_msccl("allreduce.xml", 64e6), "h200_8")["makespan_us"]
    """
    try:
        algo = xml.parse(path).getroot()
    except (OSError, xml.ParseError) as error:
        raise UserError(f"{path}: is no XML file ({error})") from None
    number = lambda element, key: _whole(path, element, key)  # noqa: E731
    gpus = {number(gpu, "id"): gpu for gpu in algo.findall("gpu")}
    if algo.tag != "algo" or sorted(gpus) != list(range(len(gpus))) or not gpus:
        raise UserError(f"{path}: expected <algo> with a <gpu> of each id from 0")
    steps: Dict[Tuple[int, int], List[xml.Element]] = {}
    peers = {}
    for gpu, element in gpus.items():
        for block in element.findall("tb"):
            where = gpu, number(block, "id")
            peers[where] = number(block, "send"), number(block, "recv"), number(block, "chan")
            steps[where] = sorted(block.findall("step"), key=lambda step: number(step, "s"))
    for step in (step for all_steps in steps.values() for step in all_steps):
        if step.get("type") not in SENDS | RECEIVES | LOCAL:
            raise UserError(f"{path}: step type is {step.get('type')!r}, expected one of {', '.join(sorted(SENDS | RECEIVES | LOCAL))}")
    made = Blocks(str(path), len(gpus), 1 + max((block for _, block in steps), default=0),
                   operand_bytes / number(algo, "nchunksperloop"), f"MSCCL {algo.get('name', '')}".strip())
    done: Dict[Tuple[int, int], int] = dict.fromkeys(steps, 0)  # steps of each block
    ends: Dict[Tuple[int, int, int], List[int]] = {}  # tasks that end a step
    sent: Dict[Tuple[int, int, int], List[int]] = {}  # copies of each connection, in order
    received = dict.fromkeys(((gpu, peer, chan) for (gpu, _), (_, peer, chan) in peers.items()), 0)
    wire = WIRE.get(algo.get("proto", "Simple"))
    if wire is None:
        raise UserError(f"{path}: proto is {algo.get('proto')!r}, expected one of {', '.join(WIRE)}")
    while any(done[where] < len(steps[where]) for where in steps):
        before = sum(done.values())
        for where, all_steps in steps.items():
            while done[where] < len(all_steps):
                if not _step(made, path, where, all_steps[done[where]], done, ends, sent, received, peers[where], wire):
                    break
                done[where] += 1
        if sum(done.values()) == before:
            waiting = next(where for where in steps if done[where] < len(steps[where]))
            raise UserError(f"{path}: step {done[waiting]} of block {waiting[1]} of gpu {waiting[0]} waits for ever")
    return made.plan


def _step(made, path, where, step, done, ends, sent, received, peers, wire):
    """Adds the tasks of one step; False if what it waits for is not there yet."""
    gpu, block = where
    to, source, chan = peers
    kind, size = step.get("type"), _whole(path, step, "cnt") * made.chunk_bytes
    after = list(ends.get((gpu, block, done[where] - 1), []))
    depends = _whole(path, step, "depid")
    if depends >= 0:
        needed = ends.get((gpu, depends, _whole(path, step, "deps")))
        if needed is None:
            return False
        after += needed
    if kind in RECEIVES:
        arrived = sent.get((source, gpu, chan), [])
        if received[gpu, source, chan] == len(arrived):
            return False
        after.append(arrived[received[gpu, source, chan]])
        received[gpu, source, chan] += 1
    if kind in REDUCES or kind == "re":
        after = [made.local("reduce", gpu, block, size, after)]
    if kind == "cpy":
        after = [made.local("copy", gpu, block, size, after)]
    if kind in SENDS:
        after = [made.copy(gpu, to, block, wire * size, after)]
        sent.setdefault((gpu, to, chan), []).append(after[0])
    ends[gpu, block, done[where]] = after
    return True


def _whole(path, element, key):
    try:
        return int(element.get(key, ""))
    except ValueError:
        raise UserError(f"{path}: {key} of <{element.tag}> is {element.get(key)!r}, expected a whole number") from None
