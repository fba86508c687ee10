"""Plans: what GPUs do, task by task (sim/plan/format.md)."""
import gzip
import json
from typing import Any, Dict, List, Mapping, Optional, Sequence, Union

from ._arguments import plain
from ._overlap import UserError

Task = int
Tasks = Union[None, Task, Sequence[Task]]


class Plan:
    """What GPUs do: tasks in the order in which they are enqueued. A method that adds a task returns its number, for `after`.

    gpus: ranks 0 to gpus - 1. workload: what work it is, as for run(), so that results are compared with `serial`.
    streams: names of streams beside compute, local and transfer N.

    >>> plan = Plan(2)
    >>> sent = plan.copy(0, 1, 1e8)
    >>> plan.gemm(1, (4096, 4096, 4096), after=sent)
    """

    def __init__(self, gpus: int, *, workload: Optional[Mapping] = None, streams: Sequence[str] = (), description: str = ""):
        self.gpus = int(gpus)
        self._head: Dict[str, Any] = {"schema": 2, "gpus": self.gpus}
        if description:
            self._head["description"] = description
        if workload is not None:
            self._head["config"] = {"workload": plain(workload, "/workload")}
        if streams:
            self._head["streams"] = list(streams)
        self._tasks: List[Dict[str, Any]] = []
        self._keeps_text, self._text = True, None  # JSON, for many simulations of the same plan

    @property
    def tasks(self) -> List[Dict[str, Any]]:
        """All tasks with their keys (sim schema plan), in their order, which may be changed; `after` counts by this order."""
        self._keeps_text, self._text = False, None
        return self._tasks

    def drop_places(self) -> None:
        """Forgets where the data are, so that sizes may be changed. Such a plan can be simulated, but not executed."""
        for one in (self._head, *self.tasks):
            for key in ("buffers", "inputs", "results", "from", "to"):
                one.pop(key, None)

    @property
    def ranks(self) -> range:
        return range(self.gpus)

    def add(self, gpu: int, kind: str, stream: str, after: Tasks = None, **keys: Any) -> Task:
        """A task of any kind with any keys of `sim schema plan`."""
        task = {"gpu": int(gpu) % self.gpus, "kind": kind, "stream": stream,
                **{key: plain(value, "/" + key) for key, value in keys.items() if value is not None}}
        if after is not None:
            waits = after if isinstance(after, (list, tuple)) else [after]
            task["after"] = [plain(wait, "/after") for wait in waits if wait is not None]
        self._tasks.append(task)
        self._text = None
        return len(self._tasks) - 1

    def gemm(self, gpu: int, shape: Sequence[int], *, after: Tasks = None, dtype: str = "bf16", stream: str = "compute",
             **keys: Any) -> Task:
        """C[m, n] = A[m, k] B[k, n] on one rank; shape: (m, n, k)."""
        m, n, k = plain(shape, "/shape")
        return self.add(gpu, "gemm", stream, after, m=m, n=n, k=k, dtype=dtype, **keys)

    def copy(self, src: int, dst: int, bytes: float, *, after: Tasks = None, agent: str = "dma", transfer: str = "pull",
             stream: Optional[str] = None, **keys: Any) -> Task:
        """Bytes from one rank's memory to another's, by default on a stream for each peer."""
        src, dst = int(src) % self.gpus, int(dst) % self.gpus
        executes, peer = (dst, src) if transfer == "pull" else (src, dst)
        return self.add(executes, "copy", stream or f"transfer {peer}", after, src=src, dst=dst, bytes=bytes, agent=agent,
                        transfer=transfer, **keys)

    def local_copy(self, gpu: int, bytes: float, *, after: Tasks = None, stream: str = "local", **keys: Any) -> Task:
        """Bytes inside one rank's memory: a pack or a scatter."""
        return self.add(gpu, "local_copy", stream, after, bytes=bytes, **keys)

    def reduce(self, gpu: int, bytes: float, parts: int = 2, *, after: Tasks = None, stream: str = "local", **keys: Any) -> Task:
        """The sum of `parts` operands of so many bytes each."""
        return self.add(gpu, "reduce", stream, after, bytes=bytes, parts=parts, **keys)

    def memory_bound(self, gpu: int, read_bytes: float, write_bytes: float, *, after: Tasks = None, stream: str = "compute",
                     **keys: Any) -> Task:
        """An element-wise or similar operator."""
        return self.add(gpu, "memory_bound", stream, after, read_bytes=read_bytes, write_bytes=write_bytes, **keys)

    def collective(self, name: str, operand_bytes: float, *, after: Optional[Sequence[Tasks]] = None,
                   stream: str = "transfer 0", **keys: Any) -> List[Task]:
        """A library's collective, one kernel a rank: "all_gather", ... of an operand. after: by rank. Returns them by rank."""
        return [self.add(rank, "collective", stream, None if after is None else after[rank], collective=name,
                         operand_bytes=operand_bytes, **keys) for rank in self.ranks]

    def to_dict(self) -> Dict[str, Any]:
        """As in a file (sim schema plan)."""
        return {**self._head, "tasks": self._tasks}

    def to_json(self) -> str:
        if self._text is None:
            if not self._tasks:
                raise UserError("plan: has no tasks")
            text = json.dumps(self.to_dict())
            if not self._keeps_text:
                return text
            self._text = text
        return self._text

    def save(self, path: Any) -> None:
        """A file for `sim --plan`; compressed if its name ends with .gz."""
        opened = gzip.open if str(path).endswith(".gz") else open
        with opened(path, "wt", encoding="utf-8") as file:
            file.write(self.to_json() + "\n")

    @classmethod
    def load(cls, path: Any) -> "Plan":
        """A plan of a file, such as `sim --graph` writes, with one task for each that `each_rank` stands for."""
        opened = gzip.open if str(path).endswith(".gz") else open
        try:
            with opened(path, "rt", encoding="utf-8") as file:
                given = json.load(file)
            plan = cls(given["gpus"])
            plan._head = {key: value for key, value in given.items() if key != "tasks"}
            plan._tasks = _one_by_one(given["tasks"], plan.gpus)
            return plan
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise UserError(f"{path}: is no plan ({type(error).__name__}: {error})") from None

    def __len__(self) -> int:
        return len(self._tasks)

    def __repr__(self) -> str:
        return f"Plan(gpus={self.gpus}, tasks={len(self)})"


def _one_by_one(entries, gpus):
    """The tasks of a plan without each_rank: every key as its rank has it, and what it waits for by number."""
    lines, count = [], 0  # of each line of the file: itself, number of its first task, tasks from rank to rank
    for entry in entries:
        group = entry.get("each_rank", [entry])
        step = len(group) if "each_rank" in entry else 0
        lines += [(line, count + place, step) for place, line in enumerate(group)]
        count += step * gpus or 1
    named = {line["name"]: number for number, (line, _, _) in enumerate(lines) if "name" in line}
    tasks = [None] * count

    def at(value, rank):
        return (rank + int(value)) % gpus if isinstance(value, str) else value

    def waits(item, rank):
        if isinstance(item, dict):
            return {**item, "task": waits(item["task"], rank)}
        line, of = item if isinstance(item, list) else (item, rank)
        _, first, step = lines[named.get(line, line)]
        return first + step * at(of, rank)

    for line, first, step in lines:
        for rank in range(gpus) if step else [line["gpu"]]:
            task = {"gpu": rank, **{key: value["ranks"][rank] if isinstance(value, dict) and "ranks" in value else value
                                    for key, value in line.items()}}
            task.update({key: at(task[key], rank) for key in ("src", "dst", "second_dst", "shard") if key in task})
            kind, _, peer = task["stream"].partition(" ")
            if kind == "transfer" and peer[:1] in "+-":
                task["stream"] = f"transfer {at(peer, rank)}"
            if "after" in task:
                task["after"] = [waits(item, rank) for item in task["after"]]
            tasks[first + step * rank] = task
    return tasks
