"""A plan: every task of every rank, and the order in which one host thread may enqueue them."""
import gzip
import heapq
import json
import pathlib
import re
import zlib

SIZES = {"bf16": 2, "fp16": 2, "fp32": 4}


class Refused(Exception):
    """What the user is told."""


# ---- The plan: every task of every rank ----

class Task:
    def __init__(self, line, rank, gpus):
        value = {key: one["ranks"][rank] if isinstance(one, dict) and "ranks" in one else one for key, one in line.items()}
        self.rank, self.kind, self.value = rank, value["kind"], value
        self.src, self.dst = (rank_of(value.get(end, 0), rank, gpus) for end in ("src", "dst"))
        name = value["stream"]
        if re.fullmatch(r"transfer [+-]\d+", name):
            name = f"transfer {rank_of(name[9:], rank, gpus)}"
        self.stream = (name, value.get("priority", 0) > 0)
        self.sources, self.targets = value["from"] if "from" in value else [], value["to"] if "to" in value else []
        self.after, self.item = [], None


def rank_of(value, rank, gpus):
    return (rank + int(value)) % gpus if isinstance(value, str) else value


def read(path):
    try:
        data = pathlib.Path(path).read_bytes()
        plan = json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except (OSError, EOFError, zlib.error) as error:
        raise Refused(getattr(error, "strerror", None) or f"can't be read: {error}") from error
    except ValueError as error:
        raise Refused(f"no JSON: {error}") from error
    if not isinstance(plan, dict) or "tasks" not in plan:
        raise Refused("is no plan: expected an object with 'gpus' and 'tasks' (sim/plan/format.md)")
    if "buffers" not in plan:
        why = plan.get("not_placed", "it has no 'buffers'")
        raise Refused(f"its data have no places, allowed: what 'sim search --save' and 'sim --graph' write ({why})")
    if "workload" not in plan.get("config", {}):
        raise Refused("/config: has no workload, which says what the results are compared with")
    return plan


def tasks_of(plan):
    """All tasks in the order of the file. `after` of each: tasks of other streams that have ended before."""
    gpus, tasks, lines, named = plan["gpus"], [], [], {}
    for entry in plan["tasks"]:
        group = entry.get("each_rank")
        for i, line in enumerate(group or [entry]):
            named[line.get("name")] = len(lines)
            lines.append((len(tasks) + i, len(group) if group else 0))
        for rank in range(gpus) if group else [entry["gpu"]]:
            tasks += [Task(line, rank, gpus) for line in group or [entry]]
    for task in tasks:
        for one in task.value.get("after", []):
            if isinstance(one, dict):
                raise Refused("waits for shares of other tasks (gates), which only a simulation does")
            line, rank = one if isinstance(one, list) else (one, task.rank)
            first, step = lines[named[line] if isinstance(line, str) else line]
            before = tasks[first + rank_of(rank, task.rank, gpus) * step]
            if (before.rank, before.stream) != (task.rank, task.stream):
                task.after.append(before)
    return tasks


def refuse_unknown(plan, tasks):
    """What neither program can express."""
    workload = plan["config"]["workload"]
    dtype = workload["gemm"]["dtype"]
    what = workload["collective"] + (" behind a GEMM" if workload.get("order") == "gemm_first" else "")
    if what not in ("all_gather", "reduce_scatter", "reduce_scatter behind a GEMM", "all_reduce", "all_reduce behind a GEMM"):
        raise Refused(f"/config/workload: is {what}, allowed: all_gather before a GEMM, reduce_scatter or all_reduce behind one")
    if dtype not in SIZES or any(buffer["dtype"] != dtype for buffer in plan["buffers"]):
        raise Refused(f"/config/workload/gemm/dtype: is {dtype}, allowed: {', '.join(SIZES)}, the same for all buffers")
    for number, task in enumerate(tasks):
        where = f"task {number}: "
        if task.kind not in ("gemm", "copy", "local_copy", "reduce"):
            raise Refused(f"{where}kind is {task.kind}, allowed: gemm, copy, local_copy, reduce")
        for key in ("prelaunched", "dma_command", "stored", "added", "persistent", "groups", "batch"):
            if task.value.get(key) and (task.kind != "gemm" or task.value[key] != 1 or key == "persistent"):
                raise Refused(f"{where}{key}, which can't be expressed by streams, copies and library kernels")
        for buffer, row, column, rows, columns in task.sources + task.targets:
            whole = plan["buffers"][buffer]
            if row + rows > whole["rows"] or column + columns > whole["columns"] or min(row, column, rows - 1, columns - 1) < 0:
                raise Refused(f"{where}a block reaches beyond its buffer {whole['name']}")
            if any(one * SIZES[dtype] % 16 for one in (column, columns, whole["columns"])):
                raise Refused(f"{where}columns {column} + {columns}: allowed: multiples of {16 // SIZES[dtype]} (16 bytes)")
        if len(task.sources) > 16:
            raise Refused(f"{where}{len(task.sources)} blocks, allowed: 1 to 16")
        need = {"gemm": (2, 1), "copy": (1, 1), "reduce": (len(task.sources), 1), "local_copy": (len(task.sources),) * 2}[task.kind]
        if not task.sources or (len(task.sources), len(task.targets)) != need:
            raise Refused(f"{where}{len(task.sources)} blocks from and {len(task.targets)} to do not suit a {task.kind}")
        if task.kind != "gemm" and any(block[3:] != task.targets[0][3:] for block in task.sources if len(task.targets) == 1):
            raise Refused(f"{where}blocks of different sizes")


# ---- Steps: what is enqueued together, for one rank or for all ----

class Item:
    """A task, or the same task of all ranks. `waits`: (item, rank as an expression) of other streams."""
    def __init__(self, tasks, stream):
        self.tasks, self.stream, self.waits, self.name, self.awaited, self.step = tasks, stream, [], "", False, 0
        for task in tasks:
            task.item = self


def sorted_by_waits(items, before_of):
    """As near to their order as it gets, each behind those it waits for; None if there is a cycle."""
    index = {item: number for number, item in enumerate(items)}
    missing, behind = {}, {item: [] for item in items}
    for item in items:
        before = set(before_of(item))
        missing[item] = len(before)
        for one in before:
            behind[one].append(item)
    ready, done = [index[item] for item in items if not missing[item]], []
    while ready:
        done.append(items[heapq.heappop(ready)])
        for item in behind[done[-1]]:
            missing[item] -= 1
            if not missing[item]:
                heapq.heappush(ready, index[item])
    return done if len(done) == len(items) else None


def alike(plan, tasks, relative):
    """Items of all ranks, if all do the same with ranks counted from their own; else None."""
    gpus, queues = plan["gpus"], {}

    def stream_of(task):
        number = re.fullmatch(r"transfer (\d+)", task.stream[0])
        return (f"transfer_{(int(number[1]) - task.rank) % gpus}" if number and relative else task.stream[0], task.stream[1])

    def looks(task):
        blocks = [(plan["buffers"][block[0]]["name"], (plan["buffers"][block[0]]["gpu"] - task.rank) % gpus)
                  for block in task.sources + task.targets]
        waits = {(place[one], (one.rank - task.rank) % gpus) for one in task.after}
        return task.kind, [task.value.get(key) for key in ("accumulate", "agent", "copy_cus", "transfer")], len(task.sources), blocks, waits
    for task in tasks:
        queues.setdefault((task.rank, stream_of(task)), []).append(task)
    place = {task: (stream, number) for (_, stream), queue in queues.items() for number, task in enumerate(queue)}
    by_place = {}
    for task in tasks:
        by_place.setdefault(place[task], {})[task.rank] = task
    if any(len(ranks) != gpus or any(looks(one) != looks(ranks[0]) for one in ranks.values()) for ranks in by_place.values()):
        return None
    items = [Item([ranks[rank] for rank in range(gpus)], where[0]) for where, ranks in by_place.items()]
    return in_order(items)


def in_order(items):
    previous, last = {}, {}
    for item in items:
        queue = (item.stream, item.tasks[0].rank)
        previous[item] = [last[queue]] if queue in last else []
        last[queue] = item
    return sorted_by_waits(items, lambda item: previous[item] + [one.item for one in item.tasks[0].after])


def steps_of(plan, tasks):
    """[(ranks, items)] in an order in which no event is waited for before it is recorded."""
    gpus = plan["gpus"]
    same = alike(plan, tasks, True) or alike(plan, tasks, False)
    items = same or in_order([Item([task], (task.stream[0], task.stream[1])) for task in tasks])
    if items is None:
        raise Refused("/tasks: tasks wait for each other in a circle")
    counts, waited, latest, place, steps = {}, {}, {}, {}, []
    for item in items:
        task, suffix = item.tasks[0], "" if same else f"_of_{item.tasks[0].rank}"
        queue = (item.stream, None if same else task.rank)
        item.step = latest.get(queue, 0)
        place[item] = sum(1 for one in place if (one.stream, None if same else one.tasks[0].rank) == queue)
        by_queue = {}
        for one in sorted(task.after, key=lambda one: place[one.item]):
            by_queue[(one.rank, one.stream)] = one
        for key, one in by_queue.items():
            item.step = max(item.step, one.item.step + (one.rank != task.rank))
            if place[one.item] <= waited.get((queue, key), -1):
                continue  # the stream has waited for a later one of the same stream
            waited[(queue, key)] = place[one.item]
            one.item.awaited = True
            item.waits.append((one.item, (one.rank - task.rank) % gpus if same else one.rank))
        latest[queue] = item.step
        number = counts.setdefault(task.kind + suffix, 0)
        counts[task.kind + suffix] += 1
        item.name = f"{task.kind}{suffix}_{number}"
    if same:
        items.sort(key=lambda item: item.step)
    for item in items:
        ranks = list(range(gpus)) if same else [item.tasks[0].rank]
        if not steps or steps[-1][0] != ranks or steps[-1][1][0].step != item.step and same:
            steps.append((ranks, []))
        steps[-1][1].append(item)
    return steps
