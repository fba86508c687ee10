"""Execution plans of MSCCL++ (JSON) as plans, and a plan as one of them.

Format as src/core/executor/execution_plan.cc of https://github.com/microsoft/mscclpp reads it, 2026-08.
"""
import json
import math
from typing import Any, Dict, List

from ._msccl import Blocks, PACKET_OF_LL
from ._overlap import UserError
from ._plan import Plan

PUTS = ("put", "pws", "pwsf", "ppkt", "rppkt")
REDUCTIONS = ("re", "res", "rre", "rres", "repkt", "respkt", "recpkt", "recspkt")
LOCAL_COPIES = ("copy", "upkt", "cpkt")
SWITCHED = ("glres", "gstore", "gstorepkt")
SIGNALS, WAITS = ("signal", "rlxsignal"), ("wait", "rlxwait")
OTHERS = ("barrier", "flush", "get", "nop", "pipeline", "sem_acquire", "sem_release")


def read_mscclpp(path: Any, operand_bytes: float) -> Plan:
    """The plan of an MSCCL++ execution plan, for simulate() or `sim --plan`.

    operand_bytes: what the chunks of its larger buffer make up. Returns a Plan. An operation that reads from peers, sums and sends is
    one task after another. Raises UserError, also for operations of the switch (NVLS), for which plans have no task.

    >>> simulate(read_mscclpp("allgather.json", 64e6), "h200_8")["makespan_us"]
    """
    try:
        with open(path, encoding="utf-8") as file:
            given = json.load(file)
        gpus = sorted(given["gpus"], key=lambda gpu: gpu["id"])
        if [gpu["id"] for gpu in gpus] != list(range(len(gpus))):
            raise UserError(f"{path}: /gpus: expected one of each id from 0")
        chunks = max(max(gpu["input_chunks"], gpu["output_chunks"]) for gpu in gpus)
        blocks = [(gpu["id"], block["id"], gpu, block) for gpu in gpus for block in gpu["threadblocks"]]
        made = Blocks(str(path), len(gpus), 1 + max(number for _, number, _, _ in blocks), operand_bytes / chunks,
                      f"MSCCL++ {given.get('name', '')}".strip())
        return _Execution(str(path), made, gpus, blocks).run()
    except UserError:
        raise
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, StopIteration) as error:
        raise UserError(f"{path}: is no MSCCL++ execution plan ({type(error).__name__}: {error})") from None


class _Execution:
    """Goes through the operations of all thread blocks, each as far as it does not wait."""

    def __init__(self, path, made, gpus, blocks):
        self.path, self.made = path, made
        self.channels = {gpu["id"]: self.ends_of(gpu) for gpu in gpus}
        self.last = {(gpu, block): [] for gpu, block, _, _ in blocks}  # tasks that the next one waits for
        self.blocks = {(gpu, number): (of_gpu, block, list(self.in_turns(block["ops"]))) for gpu, number, of_gpu, block in blocks}
        self.signals: Dict[Any, List[List[int]]] = {}  # by channel end that sees them
        self.seen: Dict[Any, int] = {}
        self.packets: Dict[Any, List[Any]] = {}  # by GPU: from and to which scratch chunk, and the task that writes them
        self.tokens = {(gpu["id"], number): [[] for _ in range(semaphore["init_value"])]
                       for gpu in gpus for number, semaphore in enumerate(gpu.get("semaphores", []))}
        self.rounds: Dict[Any, List[Dict[Any, List[int]]]] = {}  # of barriers
        self.passed: Dict[Any, int] = {}

    @staticmethod
    def ends_of(gpu):
        """By type of channel and number: the peer, and which channel to this peer it is."""
        ends, count = {}, {}
        for group in gpu["channels"]:
            kind = group["channel_type"]
            for peer in group.get("connected_to", []):
                place = count.setdefault((kind, peer), 0)
                count[kind, peer] += 1
                ends.setdefault(kind, []).append((peer, place))
        return ends

    def in_turns(self, ops):
        """Operations with the part of their bytes that they work on: from where on, and how many at most."""
        for op in ops:
            if op["name"] != "pipeline":
                yield op, 0, math.inf
                continue
            unit = op["iter_context"]["unit_size"]
            for turn in range(math.ceil(op["iter_context"]["num_chunks"] * self.made.chunk_bytes / unit)):
                for inner in op["ops"]:
                    yield inner, turn * unit, unit

    def run(self):
        done = dict.fromkeys(self.last, 0)
        while True:
            before = sum(done.values())
            for where, (of_gpu, block, ops) in self.blocks.items():
                while done[where] < len(ops) and self.do(where, of_gpu, block, *ops[done[where]]):
                    done[where] += 1
            waiting = next((where for where in done if done[where] < len(self.blocks[where][2])), None)
            if waiting is None:
                return self.made.plan
            if sum(done.values()) == before:
                op = self.blocks[waiting][2][done[waiting]][0]["name"]
                raise UserError(f"{self.path}: operation {done[waiting]} ({op}) of block {waiting[1]} of gpu {waiting[0]} waits for ever")

    def do(self, where, of_gpu, block, op, start, most):
        name = op["name"]
        if name in WAITS:
            return self.wait(where, block, op)
        if name == "barrier":
            return self.barrier(where, op)
        if name in ("sem_acquire", "sem_release"):
            return self.semaphores(where, op, name == "sem_acquire")
        if name in SWITCHED:
            raise UserError(f"{self.path}: operation '{name}' goes through the switch (NVLS), for which plans have no task")
        if name in PUTS + REDUCTIONS + LOCAL_COPIES + ("get",):
            if not self.move(where, of_gpu, block, op, start, most):
                return False
        elif name not in SIGNALS + OTHERS:
            known = sorted(PUTS + REDUCTIONS + LOCAL_COPIES + SIGNALS + WAITS + OTHERS)
            raise UserError(f"{self.path}: operation {name!r} is not known (allowed: {', '.join(known)})")
        if name in SIGNALS + ("pws", "pwsf"):
            for kind, peer, place in self.peers(where, block, op):
                self.signals.setdefault((peer, kind, where[0], place), []).append(list(self.last[where]))
        return True

    def peers(self, where, block, op):
        kind = op["channel_type"]
        numbers = next(group["channel_ids"] for group in block["channels"] if group["channel_type"] == kind)
        return [(kind, *self.channels[where[0]][kind][numbers[channel]]) for channel in op["channel_ids"]]

    def wait(self, where, block, op):
        ends = [(where[0], *channel) for channel in self.peers(where, block, op)]
        if any(len(self.signals.get(end, [])) <= self.seen.get(end, 0) for end in ends):
            return False
        for end in ends:
            self.need(where, self.signals[end][self.seen.get(end, 0)])
            self.seen[end] = self.seen.get(end, 0) + 1
        return True

    def barrier(self, where, op):
        key = where[0], op["barrier_id"]
        rounds, turn = self.rounds.setdefault(key, []), self.passed.get((where, key), 0)
        if len(rounds) == turn:
            rounds.append({})
        rounds[turn].setdefault(where, list(self.last[where]))
        if len(rounds[turn]) < op["num_threadblocks"]:
            return False
        for tasks in rounds[turn].values():
            self.need(where, tasks)
        self.passed[where, key] = turn + 1
        return True

    def semaphores(self, where, op, acquire):
        tokens = [self.tokens[where[0], number] for number in op["semaphore_ids"]]
        if acquire and not all(tokens):
            return False
        for of_one in tokens:
            if acquire:
                self.need(where, of_one.pop(0))
            else:
                of_one.append(list(self.last[where]))
        return True

    def need(self, where, tasks):
        self.last[where] = self.last[where] + [task for task in tasks if task not in self.last[where]]

    def move(self, where, of_gpu, block, op, start, most):
        """Adds the tasks of an operation on data; False if packets that it reads have not come."""
        gpu, number = where
        name, packets, kind = op["name"], op["name"].endswith("pkt"), op.get("channel_type")
        sources, targets = op["src_buff"], op["dst_buff"]
        part, parts = (op["tbg_info"]["tb_id"], op["tbg_info"]["tbg_size"]) if "tbg_info" in op else (0, 1)

        def rank_of(place):
            numbers = next(group["remote_buffer_ids"] for group in block["remote_buffer_refs"] if group["access_channel_type"] == kind)
            return of_gpu["remote_buffers"][numbers[place["buffer_id"]]]["rank"]

        def bytes_of(place):
            return min(max(place["size"] * self.made.chunk_bytes / parts - start, 0), most)

        def range_of(place):
            begin = place["index"] + place["size"] * part / parts
            return begin, begin + place["size"] / parts

        if packets:
            read = sources[1:] if name in REDUCTIONS else sources[:1] if name in ("upkt", "rppkt") else []
            for place in read:
                writers = self.written(gpu, *range_of(place))
                if writers is None:
                    return False
                self.need(where, writers)
        after, wire = self.last[where], PACKET_OF_LL if packets else 1
        last = [self.made.copy(rank_of(place), gpu, number, bytes_of(place), after, pull=True, dma=kind == "port")
                for place in sources if "buffer_id" in place and bytes_of(place) > 0]
        after = last or after
        if name in REDUCTIONS and bytes_of(sources[0]) > 0:
            after = last = [self.made.local("reduce", gpu, number, bytes_of(sources[0]), after, len(sources))]
        if name in LOCAL_COPIES and bytes_of(sources[0]) > 0:
            after = last = [self.made.local("copy", gpu, number, bytes_of(sources[0]), after)]
        for place in targets:
            if "buffer_id" in place and bytes_of(place) > 0:
                peer = rank_of(place)
                last = last if after is not last else []
                last.append(self.made.copy(gpu, peer, number, wire * bytes_of(place), after, dma=kind == "port"))
                if packets:
                    self.packets.setdefault(peer, []).append((*range_of(place), last[-1]))
            elif packets and place.get("type") == "s" and last:
                self.packets.setdefault(gpu, []).append((*range_of(place), last[-1]))
        self.last[where] = last or self.last[where]
        return True

    def written(self, gpu, begin, end):
        """The tasks that write packets of a range of scratch chunks; None if not all of it is written."""
        found = sorted(one for one in self.packets.get(gpu, []) if one[0] < end - 1e-9 and one[1] > begin + 1e-9)
        for first, last, _ in found:
            if first > begin + 1e-9:
                return None
            begin = max(begin, last)
        return [task for _, _, task in found] if begin >= end - 1e-9 else None


def write_mscclpp(plan: Plan, path: Any, name: str = "plan", collective: str = "allgather") -> None:
    """An MSCCL++ execution plan of a plan that only copies, such as `sim --graph` writes of a list of all-gathers.

    Of each copy `shard` and `chunk` say which chunk of the output it is. One thread block a GPU puts and signals in the order of
    the plan, and waits only before what needs what came, and at the end. Returns nothing. Raises UserError.

    >>> write_mscclpp(plan, "allgather.json")
    """
    tasks = plan.to_dict()["tasks"]
    for number, task in enumerate(tasks):
        if task["kind"] != "copy" or task.get("shard", -1) < 0:
            raise UserError(f"plan: task {number} is no copy of a shard, which is all that an execution plan is written of")
    per_shard = 1 + max((max(task.get("chunk", 0), 0) for task in tasks), default=0)
    ops: List[List[Dict[str, Any]]] = [[] for _ in plan.ranks]
    peers = [sorted({task["dst"] if task["src"] == rank else task["src"] for task in tasks if rank in (task.get("src"), task.get("dst"))})
             for rank in plan.ranks]
    coming: List[Dict[int, List[int]]] = [{} for _ in plan.ranks]  # by peer: copies not waited for yet

    def wait(rank, peer, until=None):
        while coming[rank].get(peer) and (until is None or coming[rank][peer][0] <= until):
            coming[rank][peer].pop(0)
            ops[rank].append({"name": "wait", "channel_ids": [peers[rank].index(peer)], "channel_type": "memory"})

    for number, task in enumerate(tasks):
        src, dst, chunk = task["src"], task["dst"], task["shard"] * per_shard + max(task.get("chunk", 0), 0)
        for needed in task.get("after", []):
            if not isinstance(needed, int):
                raise UserError(f"plan: task {number} waits for a share of another one, which an execution plan can't say")
            if tasks[needed]["dst"] == src:
                wait(src, tasks[needed]["src"], needed)
        channel = {"channel_ids": [peers[src].index(dst)], "channel_type": "memory"}
        ops[src] += [{"name": "put", "src_buff": [{"type": "o", "index": chunk, "size": 1}],
                      "dst_buff": [{"buffer_id": peers[src].index(dst), "index": chunk, "size": 1}], **channel},
                     {"name": "signal", **channel}]
        coming[dst].setdefault(src, []).append(number)
    for rank in plan.ranks:
        for peer in peers[rank]:
            wait(rank, peer)
    numbers = [list(range(len(of_rank))) for of_rank in peers]
    chunks = plan.gpus * per_shard
    gpus = [{"id": rank, "input_chunks": per_shard, "output_chunks": chunks, "scratch_chunks": 0,
             "threadblocks": [{"id": 0, "ops": ops[rank], "channels": [{"channel_type": "memory", "channel_ids": numbers[rank]}],
                               "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": numbers[rank]}]}],
             "channels": [{"channel_type": "memory", "connected_to": peers[rank]}],
             "remote_buffers": [{"rank": peer, "type": "o", "access_channel_types": ["memory"]} for peer in peers[rank]],
             "semaphores": []} for rank in plan.ranks]
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"name": name, "collective": collective, "protocol": "Simple", "inplace": True, "reuse_resources": False, "gpus": gpus,
                   "num_threads_per_block": 1024, "use_double_scratch_buffer": False, "buffer_alignment": 16,
                   "min_message_size": 0, "max_message_size": 2 ** 64 - 1}, file)
