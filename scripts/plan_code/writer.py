"""A plan as a program: C++ for CUDA or HIP, Python for PyTorch. The rest of both is in program.cpp and program.py."""
import pathlib
import re

from plan_code.plan import Refused, steps_of

FRAMES = pathlib.Path(__file__).resolve().parent
RESERVED = {"rank", "copy", "sum", "gemm", "wait", "record", "fill", "use", "pick", "slot", "shard", "gpus", "stream", "done", "main",
            "streams", "on", "other", "units", "library", "workspace", "released", "ended", "threads", "lanes", "most", "signals",
            "handles", "events", "enqueue", "check", "gate", "compute", "local", "torch", "dist", "out", "copy_by_kernel", "M", "N", "K",
            "run", "stop", "handle"}
TORCH_TYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


# ---- Expressions: numbers as functions of the rank ----

def identifier(name, taken):
    name = re.sub(r"\W", "_", name)
    name = name if re.match(r"[A-Za-z]", name) and name not in RESERVED else f"x_{name}"
    while name in taken:
        name += "_"
    return name


class Writer:
    """Texts of one step. `python`: for PyTorch, else for C++."""
    def __init__(self, plan, tasks, python):
        self.plan, self.tasks, self.python, self.gpus = plan, tasks, python, plan["gpus"]
        gemm = plan["config"]["workload"]["gemm"]
        self.shard = gemm["m"] // self.gpus if gemm["m"] % self.gpus == 0 else 0
        self.buffers, self.ranks, self.peers, self.streams = {}, [], set(), {}
        for buffer in plan["buffers"]:
            if buffer["name"] not in self.buffers:
                self.buffers[buffer["name"]] = identifier(buffer["name"], self.buffers.values())

    def limits(self):
        """Compute units that GEMMs may use. A machine with more would need masks, so the programs refuse it."""
        return sorted({task.value["gemm_cus"] for task in self.tasks if task.value.get("gemm_cus")})

    def peer(self, distance):
        """A rank: by its distance if the step is of all ranks, else by its number."""
        if len(self.ranks) == 1 and self.gpus > 1:
            return str(distance)
        if distance % self.gpus == 0:
            return "rank"
        self.peers.add(distance % self.gpus)
        return f"peer_{distance % self.gpus}"

    def fit(self, values):
        """(step, distance, base) with value = base + step · ((rank + distance) mod gpus), or None."""
        for distance in range(self.gpus):
            at = {(rank + distance) % self.gpus: value for rank, value in zip(self.ranks, values)}
            if len(at) == self.gpus > 1 and at[1] > at[0] and all(at[x] == at[0] + x * (at[1] - at[0]) for x in at):
                return at[1] - at[0], distance, at[0]
        return None

    def slots(self):
        """(text, place by rank): of a peer among the others of this rank, of this rank among the others of a peer; the n-th other rank."""
        for distance in range(1, self.gpus):
            peers = [(rank + distance) % self.gpus for rank in self.ranks]
            yield lambda d=distance: f"slot(rank, {self.peer(d)})", [peer - (peer > rank) for rank, peer in zip(self.ranks, peers)]
            yield lambda d=distance: f"slot({self.peer(d)}, rank)", [rank - (rank > peer) for rank, peer in zip(self.ranks, peers)]
            yield lambda d=distance: f"other(rank, {d - 1})", [distance - 1 + (distance > rank) for rank in self.ranks]

    def number(self, values):
        if len(set(values)) == 1:
            return str(values[0])
        fitted, places = self.fit(values), None
        if fitted:
            places = self.peer(fitted[1])
        for text, slots in self.slots() if not fitted else []:
            zero, one = (next((value for value, slot in zip(values, slots) if slot == x), None) for x in (min(slots), min(slots) + 1))
            step = (one or 0) - zero
            if one is not None and all(value == zero + (slot - min(slots)) * step for value, slot in zip(values, slots)) and (
                    zero >= min(slots) * step):
                fitted, places = (step, 0, zero - min(slots) * step), text()
                break
        if not fitted:
            listed = ", ".join(map(str, values))
            return f"({listed})[rank]" if self.python else f"pick(rank, {{{listed}}})"
        step = "shard" if fitted[0] == self.shard else str(fitted[0])
        return f"{places} * {step}" + (f" + {fitted[2]}" if fitted[2] else "")

    def block(self, blocks):
        """One block of every rank of the step."""
        whole = [self.plan["buffers"][block[0]] for block in blocks]
        owner = whole[0]["gpu"] if len(self.ranks) == 1 and self.gpus > 1 else (whole[0]["gpu"] - self.ranks[0]) % self.gpus
        text = f"{self.buffers[whole[0]['name']]}[{self.peer(owner)}]"
        row, column, rows, columns = ([block[i] for block in blocks] for i in (1, 2, 3, 4))
        wide = all(block[2] == 0 and block[4] == buffer["columns"] for block, buffer in zip(blocks, whole))
        if wide and all(block[1] == 0 and block[3] == buffer["rows"] for block, buffer in zip(blocks, whole)):
            return text
        if self.python:
            slices = [f"{self.number(begin)}:{self.number([one + more for one, more in zip(begin, size)])}"
                      for begin, size in ((row, rows), (column, columns))]
            return f"{text}[{slices[0]}]" if wide else f"{text}[{slices[0]}, {slices[1]}]"
        if wide:
            return f"{text}.part({self.number(row)}, {self.number(rows)})"
        return f"{text}.part({self.number(row)}, {self.number(column)}, {self.number(rows)}, {self.number(columns)})"

    def said(self, blocks):
        """A block in words."""
        buffer, (_, row, column, rows, columns) = self.plan["buffers"][blocks[0][0]], blocks[0]
        fitted = self.fit([block[1] for block in blocks])
        single = len(self.ranks) == 1
        at, base = (row // self.shard, row % self.shard) if single and self.shard else (fitted[1], fitted[2]) if fitted else (None, row)
        text = f"{buffer['name']}, " if buffer["name"] not in "abc" else ""
        sharded = at is not None and self.shard and (single or fitted[0] == self.shard) and buffer["rows"] > self.shard
        if sharded and base + rows <= self.shard and text == "":
            shard = f"shard {at}" if single else f"shard +{at}" if at else "the own shard"
            half = 2 * rows == self.shard and {0: "first half of ", rows: "second half of "}.get(base)
            text += shard if rows == self.shard else half + shard if half else f"rows {base} to {base + rows - 1} of {shard}"
        elif len({tuple(block[1:]) for block in blocks}) == 1:
            text += "all rows" if rows == buffer["rows"] else f"rows {row} to {row + rows - 1}"
        else:
            text += f"{rows} rows"
        return text + ("" if columns == buffer["columns"] else f", columns {column} to {column + columns - 1}")

    def comment(self, item):
        task, first = item.tasks[0], lambda key: [getattr(one, key)[0] for one in item.tasks]
        if task.kind == "gemm":
            b = [one.sources[1] for one in item.tasks]
            columns = b[0][4] != self.plan["buffers"][b[0][0]]["columns"] and f"; columns {b[0][2]} to {b[0][2] + b[0][4] - 1} of C" or ""
            return f"GEMM of {self.said(first('sources'))}{columns}{', added to C' if task.value.get('accumulate') else ''}"
        if task.kind == "copy":
            other, way = (task.dst, "to") if task.value.get("transfer") == "push" else (task.src, "from")
            distance = (other - task.rank) % self.gpus
            who = f"by {task.value.get('copy_cus')} thread blocks" if task.value.get("agent") == "cu" else "by a DMA engine"
            rank = f"rank {other}" if len(self.ranks) == 1 else f"rank +{distance}"
            return f"{'Push' if way == 'to' else 'Pull'} {self.said(first('sources'))} {way} {rank}, {who}"
        verb = "Sum of" if task.kind == "reduce" else "Move"
        return f"{verb} {len(task.sources)} block{'s'[:len(task.sources) > 1]}: {self.said(first('targets'))}"

    def steps(self, statements, steps):
        """All steps; `statements(item)`: lines of one task."""
        lines, indent = [], " " * 4
        for number, (ranks, items) in enumerate(steps):
            self.ranks, self.peers = ranks, set()
            body = []
            for item in items:
                name = item.stream[0] + ("_first" if item.stream[1] else "")
                if item.stream not in self.streams:
                    self.streams[item.stream] = name if name in ("compute", "local") else identifier(name, self.streams.values())
                body += statements(item)
            lines += self.frame(number + 1, indent, [f"{indent}    {line}" if line else "" for line in body])
        return "\n".join(lines) + "\n"

    def operands(self, blocks):
        return [self.block(list(one)) for one in zip(*blocks)]


# ---- Programs ----

class Cuda(Writer):
    suffix = ".cpp"

    def frame(self, number, indent, body):
        if len(self.ranks) == 1:
            rank = self.ranks[0]
            head = [f"{indent}{{  // rank {rank}", f"{indent}    constexpr int rank = {rank};", f"{indent}    use(rank);"]
            return [*head, *body, f"{indent}}}"]
        head = [f"const int peer_{d} = (rank + {d}) % gpus;" for d in sorted(self.peers)]
        return [f"{indent}for (int rank = 0; rank < gpus; ++rank) {{  // step {number}", *[f"{indent}    {line}" for line in head],
                f"{indent}    use(rank);", *body, f"{indent}}}"]

    def statements(self, item):
        task, on = item.tasks[0], f"rank, {self.streams[item.stream]}"
        lines = [f"// {self.comment(item)}."]
        lines += [f"wait({on}, {self.peer(rank)}, {one.name}_done);" for one, rank in item.waits]
        sources, targets = self.operands([one.sources for one in item.tasks]), self.operands([one.targets for one in item.tasks])
        agent = task.value.get("agent", "dma" if task.kind == "copy" else None)
        if task.kind == "gemm":
            lines.append(f"gemm({on}, {sources[0]}, {sources[1]}, {targets[0]}{', 1' if task.value.get('accumulate') else ''});")
        elif agent:
            blocks = f", {task.value['copy_cus']}" if agent == "cu" else ""
            lines.append(f"copy({on}, {sources[0]}, {targets[0]}{blocks});")
        elif task.kind == "reduce":
            lines.append(f"sum({on}, {{{', '.join(sources)}}}, {targets[0]});")
        else:
            lines.append(f"move({on}, {{{', '.join(sources)}}}, {{{', '.join(targets)}}});")
        return lines + ([f"record({on}, {item.name}_done);"] if item.awaited else [])

    def program(self):
        plan, config = self.plan, self.plan["config"]
        workload, gemm = config["workload"], config["workload"]["gemm"]
        steps = steps_of(plan, self.tasks)
        awaited = [f"{item.name}_done," for _, items in steps for item in items if item.awaited]
        text = self.steps(self.statements, steps)
        if "compute" not in self.streams.values():
            raise Refused("/tasks: no GEMM is on the stream compute")
        by_place = {(buffer["name"], buffer["gpu"]): buffer for buffer in plan["buffers"] if buffer["rows"]}
        names = [name for name in self.buffers if any((name, gpu) in by_place for gpu in range(self.gpus))]
        self.ranks, self.peers, memory, checks = list(range(self.gpus)), set(), [], []
        for name in names:
            of_rank = [by_place.get((name, gpu), {"rows": 0, "columns": 1}) for gpu in self.ranks]
            rows, columns = ([one[key] for one in of_rank] for key in ("rows", "columns"))
            memory.append(f"        {self.buffers[name]}[rank] = allocate(rank, {self.number(rows)}, {self.number(columns)});")
        for key, lines in (("inputs", memory), ("results", checks)):
            for buffer, row, column, rows, columns in plan[key]:
                whole = plan["buffers"][buffer]
                name, rank = self.buffers[whole["name"]], whole["gpu"]
                if column or columns != whole["columns"]:
                    raise Refused(f"/{key}: a block of part of its columns, allowed: whole rows")
                if key == "inputs":
                    seed = "seed_of_b" if name == "b" else "seed_of_a"
                    lines.append(f"        if (rank == {rank}) fill({name}[rank], {row}, {rows}, {seed}(rank));")
                else:
                    lines.append(f"    wrong += wrong_entries({rank}, {name}[{rank}].part({row}, {rows}), {row});")
        for limit in self.limits():
            memory.insert(0, f"        if (units[rank] > {limit}) "
                             f"std::fprintf(stderr, \"a GEMM is planned for {limit} compute units: no mask is set\\n\"), std::exit(2);")
        first = " || ".join(f"one == {self.streams[key]}" for key in self.streams if key[1]) or "false"
        order = sorted(self.streams.values(), key=lambda name: (name != "compute", name != "local"))
        return fill_frame("program.cpp", {
            "title": title(plan), "gpus": self.gpus, **{key: gemm[key] for key in "mnk"}, "element": {"bf16": "BF16", "fp16": "__half",
            "fp32": "float"}[gemm["dtype"]], "element_type": {"bf16": "R_16BF", "fp16": "R_16F", "fp32": "R_32F"}[gemm["dtype"]],
            "streams": ", ".join(order), "events": " ".join(awaited), "buffers": ", ".join(f"{self.buffers[name]}[gpus]" for name in names),
            "steps": text, **common(plan, self.tasks), "gathers": str(workload["collective"] == "all_gather").lower(), "first": first,
            "memory": "\n".join(memory) + "\n", "checks": "\n".join(checks) + "\n"})


class PyTorch(Writer):
    def frame(self, number, indent, body):
        head = [f"peer_{d} = (rank + {d}) % GPUS" for d in sorted(self.peers - self.declared)]
        self.declared |= self.peers
        return [f"{indent}{line}" for line in head] + [line[4:] for line in body]

    def statements(self, item):
        task, on = item.tasks[0], self.streams[item.stream]
        lines = [f"# {self.comment(item)}.", f"with torch.cuda.stream({on}):"]
        for one, rank in item.waits:
            if rank == 0:
                lines.append(f"    {on}.wait_event({one.name}_done)")
            else:
                lines.append(f"    signals.wait_signal({self.peer(rank)}, channel={self.channels[one, rank, item]})")
        sources, targets = self.operands([one.sources for one in item.tasks]), self.operands([one.targets for one in item.tasks])
        if task.kind == "gemm" and task.value.get("accumulate"):
            lines.append(f"    {targets[0]}.addmm_({sources[0]}, {sources[1]})")
        elif task.kind == "gemm":
            lines.append(f"    torch.mm({sources[0]}, {sources[1]}, out={targets[0]})")
        elif task.kind == "reduce":
            sources.sort(key=lambda text: text != targets[0])
            lines.append(f"    torch.add({sources[0]}, {sources[1]}, out={targets[0]})")
            lines += [f"    {targets[0]}.add_({source})" for source in sources[2:]]
        else:
            lines += [f"    {target}.copy_({source})" for source, target in zip(sources, targets)]
        if item in self.events:
            lines.append(f"    {item.name}_done.record()")
        for (one, rank, _), channel in self.channels.items():
            if one is item:
                lines.append(f"    signals.put_signal({self.peer(-rank)}, channel={channel})")
        return lines

    def program(self):
        plan, gemm, touched = self.plan, self.plan["config"]["workload"]["gemm"], set()
        for number, task in enumerate(self.tasks):
            whole = [block for block in task.sources + task.targets if block[4] == plan["buffers"][block[0]]["columns"]]
            if task.value.get("agent") == "cu":
                raise Refused(f"task {number}: agent is cu, allowed with pytorch: dma (it has no copy kernel of so many blocks)")
            if task.kind == "copy" and len(whole) < 2:
                raise Refused(f"task {number}: copies some columns, which PyTorch does by a kernel; allowed with pytorch: whole rows")
            touched |= {plan["buffers"][b[0]]["name"] for b in task.sources + task.targets if plan["buffers"][b[0]]["gpu"] != task.rank}
        steps = steps_of(plan, self.tasks)
        if any(len(ranks) != self.gpus for ranks, _ in steps) or not touched:
            raise Refused("/tasks: ranks do different things, allowed with pytorch: the same on every rank, with copies between ranks")
        waits = [(one, rank, item) for _, items in steps for item in items for one, rank in item.waits]
        self.channels = {wait: number + 1 for number, wait in enumerate(wait for wait in waits if wait[1])}
        if len(self.channels) >= 512 // self.gpus:
            most = 512 // self.gpus - 1
            raise Refused(f"/tasks: {len(self.channels)} waits for peers, allowed with pytorch: {most} (signals of symmetric memory)")
        self.events, self.declared = {one for one, rank, _ in waits if rank == 0}, set()
        text = self.steps(self.statements, steps)
        self.ranks, buffers, places = list(range(self.gpus)), [], {"inputs": [[] for _ in self.ranks], "results": [[] for _ in self.ranks]}
        for name, called in self.buffers.items():
            size = {(one["rows"], one["columns"]) for one in plan["buffers"] if one["name"] == name}
            if len(size) > 1:
                raise Refused(f"/buffers: {name} has different sizes, allowed with pytorch: the same on every rank")
            if size and (rows := next(iter(size)))[0]:
                buffers.append(f"{called} = {'shared' if name in touched else 'private'}({rows[0]}, {rows[1]})")
        for key, by_rank in places.items():
            for buffer, row, _, rows, _ in plan[key]:
                whole = plan["buffers"][buffer]
                of = f'"{"b" if whole["name"] == "b" else "a"}", ' if key == "inputs" else ""
                by_rank[whole["gpu"]].append(f"({of}{self.buffers[whole['name']]}, {row}, {rows}),")
        names = sorted(self.streams.items(), key=lambda one: (one[1] != "compute", one[1] != "local"))
        streams = [f"{name} = torch.cuda.Stream({'priority=-1' if key[1] else ''})" for key, name in names]
        streams.append(f"streams = [{', '.join(name for _, name in names if name != 'compute')}]")
        events = "".join(f"{item.name}_done = torch.cuda.Event()\n" for _, items in steps for item in items if item in self.events)
        return fill_frame("program.py", {
            "title": title(plan), "gpus": self.gpus, **{key: gemm[key] for key in "mnk"}, "dtype": TORCH_TYPES[gemm["dtype"]],
            "steps": text, "limit": min(self.limits(), default=1 << 30),
            "buffers": "\n".join(buffers), "streams": "\n".join(streams), "events": events, **common(plan, self.tasks),
            **{key: "(" + ", ".join(f"({' '.join(blocks)})" for blocks in by_rank) + ")" for key, by_rank in places.items()}})


def common(plan, tasks):
    """What both programs are told of the check."""
    workload = plan["config"]["workload"]
    adds = sum(1 for task in tasks if task.kind == "gemm" and task.value.get("accumulate")) // plan["gpus"]
    return {"gathers": workload["collective"] == "all_gather", "scatters": workload["collective"] == "reduce_scatter",
            "roundings": plan["gpus"] + adds + 1,
            "epsilon": {"bf16": 2.0 ** -9, "fp16": 2.0 ** -12, "fp32": 2.0 ** -18}[workload["gemm"]["dtype"]]}


def title(plan):
    workload, config = plan["config"]["workload"], plan["config"]
    pair = workload["collective"] + " > gemm" if workload["collective"] == "all_gather" else "gemm > " + workload["collective"]
    gemm = workload["gemm"]
    size = f"{gemm['m']}x{gemm['n']}x{gemm['k']} {gemm['dtype']}"
    return f"{config.get('schedule', 'A plan')}: {pair}, GEMM {size} a GPU, {plan['gpus']} GPUs."


def fill_frame(name, values):
    return re.sub(r"\{\{(\w+)\}\}", lambda found: str(values[found[1]]) if found[1] in values else found[0],
                  (FRAMES / name).read_text(encoding="utf-8"))
