"""Simulates compute/communication overlap on several GPUs: the commands of `sim`, with Python's values.

Every function takes the flags of its command as keyword arguments: `--what-if a=1` is `what_if={"a": 1}`, `--set chunks=4`
is `set={"chunks": 4}`, a flag that may be repeated takes one value or a list. Values of numpy and pandas and paths are
accepted. Results are dicts with the keys of `sim --format json`, which carry their units; notebooks show them as a table,
and `to_frame()` makes a pandas.DataFrame of them.

A mistake in what is given raises UserError, a ValueError, with the line that `sim` prints. Calls release Python's lock and
may run in threads; Ctrl-C ends them. Files that are named are read at each call; files of the installation once.
"""
import bisect
import csv
import functools
import io
import json
import os
from collections.abc import Mapping
from typing import Any, Dict, List, Optional, Sequence, Union

from . import _overlap
from ._arguments import Files, as_list, plain, shape_word, words, workload_of
from ._msccl import read_msccl
from ._mscclpp import read_mscclpp, write_mscclpp
from ._overlap import UserError
from ._plan import Plan
from ._results import Advice, Columns, Explanation, Result, Step

UserError.__module__ = __name__
__version__ = _overlap.version
__all__ = ["Plan", "UserError", "Result", "advise", "choose", "compare", "cost", "explain", "import_trace", "model", "read_msccl", "read_mscclpp", "run",
           "sensitivity", "simulate", "sweep", "write_mscclpp"]

Path = Union[str, "os.PathLike[str]"]
Numbers = Union[float, Sequence[float]]
Names = Union[str, Sequence[str]]
Gemm = Union[str, Sequence[int], Mapping]
Workload = Union[Path, Mapping, Sequence[Mapping]]
WhatIf = Mapping[str, Union[str, float, bool]]


def run(config: Union[Mapping, Path, None] = None, *, topology: Optional[Path] = None, schedule: Optional[str] = None,
        set: Optional[Mapping] = None, workload: Optional[Workload] = None, gemm: Optional[Gemm] = None,
        dtype: Optional[str] = None, collective: Optional[str] = None, order: Optional[str] = None,
        shard_dim: Optional[str] = None, engine: Optional[str] = None, seeds: Optional[int] = None,
        what_if: Optional[WhatIf] = None, cost_model: Optional[Names] = None, without: Optional[Names] = None,
        host: Optional[Path] = None, steady: bool = False) -> Result:
    """How long one schedule takes, and why: `sim`.

    config: a run config (configs/schema/run.schema.json), or a file of one; the other arguments override it.
    workload: a name, a file, a dict, a list of operators, or what model() returned.
    gemm: (m, n, k), "MxNxK" or a dict, of one GPU. seeds: simulations where the machine leaves orders open.
    Returns makespan_us, serial_us, speedup, losses_us, ... Raises UserError.

    >>> run(topology="h200_8", schedule="shard_p2p", gemm=(16384, 2560, 8192))["makespan_us"]
    """
    flags = {"schedule": schedule, "engine": engine, "seeds": seeds, "host": host, "topology": topology}
    others = {"gemm": shape_word(gemm), "dtype": dtype, "collective": collective, "order": order, "shard_dim": shard_dim}
    if isinstance(config, (str, os.PathLike)) or any(value is not None for value in others.values()):
        with Files() as files:
            given = config if isinstance(config, (str, os.PathLike)) else files.json(_run_config(config or {}), "config")
            return Result(_json(files, "", {"config": given, **flags, **others, "set": set, "what_if": what_if,
                                            "workload": files.json(workload_of(workload), "workload"),
                                            "cost_model": cost_model, "without": without, "steady": steady}))
    merged = _run_config({} if config is None else config)
    if isinstance(merged, dict):
        merged.update({key: plain(value, "/" + key) for key, value in flags.items() if value is not None})
        if workload is not None:
            merged["workload"] = workload_of(workload)
        if set is not None:
            merged["params"] = {**merged.get("params", {}), **plain(set, "/set")}
        if what_if is not None:
            merged["what_if"] = {**merged.get("what_if", {}), **plain(what_if, "/what_if")}
        if cost_model is not None:
            merged["cost_models"] = as_list(cost_model)
        if without is not None:
            merged["without"] = as_list(without)
        if steady:
            merged["repeat"] = "steady"
    return Result(json.loads(_overlap.run(json.dumps(merged))))


def simulate(plan: Union[Plan, Mapping, Path], topology: Optional[Path] = None, *, trace: Optional[Path] = None,
             engine: Optional[str] = None, seeds: Optional[int] = None, what_if: Optional[WhatIf] = None,
             cost_model: Optional[Names] = None, without: Optional[Names] = None, host: Optional[Path] = None,
             steady: bool = False) -> Result:
    """How long a plan takes, and why: `sim --plan`.

    plan: a Plan, its dict or a file. trace: a timeline to write as well, which ui.perfetto.dev opens.
    Returns what run() returns. Raises UserError.

    >>> simulate(plan, "h200_8")["makespan_us"]
    """
    text = plan.to_json() if isinstance(plan, Plan) else json.dumps(plain(plan)) if isinstance(plan, Mapping) else None
    if trace is not None:
        with Files() as files:
            given = files.json(json.loads(text), "plan") if text is not None else plan
            return Result(_json(files, "", {"plan": given, "topology": topology, "trace": trace, "engine": engine, "seeds": seeds,
                                            "what_if": what_if, "cost_model": cost_model, "without": without, "host": host,
                                            "steady": steady}))
    config = {"topology": topology, "engine": engine, "seeds": seeds, "host": host, "what_if": what_if,
              "cost_models": as_list(cost_model) or None, "without": as_list(without) or None,
              "repeat": "steady" if steady else None, "plan": plan if text is None else None}
    given = json.dumps({key: plain(value, "/" + key) for key, value in config.items() if value is not None})
    return Result(json.loads(_overlap.run(given) if text is None else _overlap.simulate(given, text)))


def advise(config: Union[Mapping, None] = None, top: int = 5, agents: Names = (), kernels: str = "any", *,
           topology: Optional[Path] = None, workload: Optional[Workload] = None, gemm: Optional[Gemm] = None,
           dtype: Optional[str] = None, collective: Optional[str] = None, order: Optional[str] = None,
           shard_dim: Optional[str] = None, what_if: Optional[WhatIf] = None, host: Optional[Path] = None,
           steady: bool = False, agent: Names = (), seeds: Optional[int] = None) -> Advice:
    """Which schedule to run: simulates every candidate, `sim advise`.

    config: topology, workload, what_if, seeds, host and repeat of a run config; its schedule and params are ignored.
    top: choices to run in full. agent (or agents): only candidates that copy by "dma", or by "cu".
    kernels: "library" leaves out what needs a kernel of one's own.
    Returns the choices in "best", fastest first; of an operator list also a schedule for each pair, and the run config
    with all of them, in "pairs". Raises UserError.

    >>> advise(topology="h200_8", gemm=(8192, 2560, 8192)).to_frame()[["schedule", "makespan_us"]]
    """
    given = _run_config({} if config is None else config)
    if not isinstance(given, dict):
        raise UserError(f"config: is {given!r}, expected a dict")
    known = {"topology", "workload", "what_if", "seeds", "host", "repeat"}
    for key in given.keys() - known - {"schema", "schedule", "params", "schedules"}:
        raise UserError(f"config: /{key}: is not taken by advise (allowed: {', '.join(sorted(known))})")
    with Files() as files:
        load = workload_of(workload) if workload is not None else given.get("workload")
        return Advice(_json(files, "advise", {
            "topology": given.get("topology") if topology is None else topology, "workload": files.json(load, "workload"),
            "gemm": shape_word(gemm), "dtype": dtype, "collective": collective, "order": order, "shard_dim": shard_dim,
            "what_if": {**given.get("what_if", {}), **plain(what_if or {}, "/what_if")},
            "host": given.get("host") if host is None else host, "steady": steady or given.get("repeat") == "steady",
            "agent": as_list(agents) + as_list(agent), "kernels": kernels, "top": top,
            "seeds": given.get("seeds") if seeds is None else seeds}))


def choose(gemm: str, tokens: int, table: Path) -> Dict[str, Any]:
    """The fastest schedule for a GEMM of a table of `sim advise --table`, at so many tokens.

    Times between two buckets lie on a line, which goes on behind the last bucket. The table and the answers are kept: a
    file that changes under its name is not read again. Returns {"schedule", "params", "time_us"}. Raises UserError.

    >>> choose("gate_up", 3000, "table.json")
    """
    best = _chosen(gemm, tokens, os.fspath(table))
    return {**best, "params": dict(best["params"])}


@functools.lru_cache(maxsize=64)
def _table(path: str) -> Any:
    with open(path, encoding="utf-8") as file:
        return json.load(file)


@functools.lru_cache(maxsize=65536)
def _chosen(gemm: str, tokens: int, path: str) -> Dict[str, Any]:
    table = _table(path)
    found = [one for one in table["gemms"] if one["name"] == gemm]
    if not found:
        raise UserError(f"{path}: has no GEMM {gemm!r} (allowed: {', '.join(one['name'] for one in table['gemms'])})")
    buckets = table["buckets"]
    if tokens < buckets[0]:
        raise UserError(f"tokens: is {tokens}, allowed: {buckets[0]} and more")
    high = min(max(bisect.bisect_left(buckets, tokens), 1), len(buckets) - 1)
    part = (tokens - buckets[high - 1]) / (buckets[high] - buckets[high - 1])
    best: Dict[str, Any] = {}
    for choice in found[0]["choices"]:
        low, top = choice["times_us"][high - 1], choice["times_us"][high]
        if top is None or (low is None and part < 1):
            continue
        time = top if low is None else low + part * (top - low)
        if not best or time < best["time_us"]:
            best = {"schedule": choice["schedule"], "params": choice["params"], "time_us": time}
    if not best:
        raise UserError(f"tokens: no schedule of {gemm!r} can run {tokens}")
    return best


def model(config: Union[Path, Mapping], topology: Path, *, tokens: Union[int, Sequence[int]] = 4096,
          phase: Optional[str] = None, sequence: Optional[int] = None, tp: Optional[int] = None, ep: Optional[int] = None,
          dp: Optional[int] = None, fsdp: bool = False, imbalance: Optional[float] = None, sequence_parallel: bool = False,
          dtype: Optional[str] = None, layers: Optional[int] = None, kernels: Optional[str] = None,
          all_candidates: bool = False, cool: bool = False, seeds: Optional[int] = None, what_if: Optional[WhatIf] = None,
          html: Optional[Path] = None, **flags: Any) -> Step:
    """What a step of a transformer takes with and without overlap: `sim model`.

    config: a name in configs/models, a config.json of Hugging Face or its dict, or an operator list.
    tokens: of a step on all GPUs together; several for several steps. phase: forward, training, prefill, decode.
    tp, ep, dp: degrees of parallelism. html: a page to write as well.
    Returns serial_us, overlapped_us, speedup, tokens_per_s_... of each of the "steps"; of a model and one number of tokens
    also the "workload" of its most frequent layer, which run(workload=...) and advise(workload=...) take. Raises UserError.

    >>> model("llama3_70b", "h200_8", tokens=[4096, 16384], sequence_parallel=True).to_frame()
    """
    with Files() as files:
        file = files.json(plain(config), "config")
        counts = as_list(tokens)
        values = {"topology": topology, "sequence": sequence, "tp": tp, "ep": ep, "dp": dp, "phase": phase, "fsdp": fsdp,
                  "imbalance": imbalance, "sequence_parallel": sequence_parallel, "dtype": dtype, "layers": layers,
                  "kernels": kernels, "all_candidates": all_candidates, "cool": cool, "seeds": seeds, "what_if": what_if,
                  "html": html, **flags}
        if _is_operator_list(file):
            return Step(_json(files, "model", values, [file]))
        values["tokens"] = ",".join(map(str, counts))
        written = None
        if len(counts) == 1 and "write" not in flags:
            written = values["write"] = files.path("layer.json", "layer.json")
        result = Step(_json(files, "model", values, [file]))
        if written:
            with open(written, encoding="utf-8") as text:
                result["workload"] = json.load(text)
        return result


def cost(device: Optional[Path] = None, *, topology: Optional[Path] = None, gemm: Optional[Gemm] = None,
         dtype: Optional[str] = None, accumulate: bool = False, copy: Union[str, int, None] = None,
         agent: Optional[str] = None, cus: Optional[int] = None, transfer: Optional[str] = None, from_: Any = None,
         cost_model: Optional[Names] = None) -> Result:
    """The time of one GEMM or one copy alone, or of every row of a table: `sim cost`.

    device: a name in configs/devices; topology: a machine instead. gemm: (m, n, k), "MxNxK" or a dict.
    copy: bytes, or "64MB". from_: a CSV file, a DataFrame or a list of dicts with m, n, k, dtype (or the columns of
    attention, MoE or grouped GEMMs: `sim cost --help`). Returns time_us, TFLOPS or GBps, phases and confidence; of a table
    its "rows" with predicted_us. Raises UserError.

    >>> cost("h200", gemm=(8192, 2560, 8192))["time_us"]
    """
    if isinstance(gemm, Mapping) and dtype is None:
        dtype = gemm.get("dtype")
    with Files() as files:
        result = _json(files, "cost", {
            "device": device, "topology": topology, "gemm": shape_word(gemm), "dtype": dtype, "accumulate": accumulate,
            "copy": copy, "agent": agent, "cus": cus, "transfer": transfer, "cost_model": cost_model,
            "from": None if from_ is None else files.table(from_, "from_")})
    return Result({"rows": result} if isinstance(result, list) else result)


def sensitivity(config: Union[Mapping, Path, None] = None, *, schedules: Optional[Names] = None, by: Optional[float] = None,
                plot: Optional[Path] = None, workload: Optional[Workload] = None, gemm: Optional[Gemm] = None,
                set: Optional[Mapping] = None, what_if: Optional[WhatIf] = None, **flags: Any) -> Result:
    """Which numbers of the machine change a run's makespan most: `sim sensitivity`.

    config and flags: a run, as for run(). schedules: several instead of one. by: change of each value, percent.
    Returns "values", the most important first, with the makespan_us of a lower and a higher value. Raises UserError.

    >>> sensitivity(topology="mi300x_8", schedule="shard_p2p").to_frame()[["key", "effect"]]
    """
    with Files() as files:
        given = config if config is None or isinstance(config, (str, os.PathLike)) else files.json(_run_config(config), "config")
        if not isinstance(schedules, (str, type(None))):
            schedules = ",".join(as_list(schedules))
        return Result(_json(files, "sensitivity", {
            "config": given, "schedules": schedules, "by": by, "plot": plot, "gemm": shape_word(gemm), "set": set,
            "workload": files.json(workload_of(workload), "workload"), "what_if": what_if, **flags}))


def compare(traces: Union[Path, Sequence[Path]], tolerances: Path = "", cost_models: Names = (), *,
            cost_model: Names = (), device: Optional[str] = None, host: Optional[Names] = None,
            what_if: Optional[WhatIf] = None, html: Optional[Path] = None) -> Result:
    """Errors of predictions of measured cases: `sim compare`.

    traces: files, folders, patterns, archives of scripts/measure. tolerances: a file of claims.
    Returns "cases" with measured and predicted times and errors; cases without a prediction are listed in
    "not_predicted", claims with their standing in "verdicts", where `sim` exits with 3. Raises UserError.

    >>> compare("traces/h200_4/overlap").to_frame()
    """
    with Files() as files:
        flags = {"tolerances": tolerances or None, "cost_model": as_list(cost_models) + as_list(cost_model), "device": device,
                 "host": host, "what_if": what_if, "html": html}
        return Result(_json(files, "compare", flags, as_list(traces), partly=True))


def explain(name: str) -> Explanation:
    """Definition, parameters, values and sources of a name, or of a word of a result: `sim explain`.

    Returns its "text" and, of a device, a topology or another file, "values": key, value, meaning and source of each.
    Raises UserError.

    >>> print(explain("exposed communication"))
    """
    with Files() as files:
        text = _text(files, ["explain", "--", *str(plain(name)).split()] if " " in str(name) else ["explain", "--", plain(name)])
    values: List[Dict[str, Any]] = []
    for line in text.splitlines():
        key, equals, value = line.strip().partition(" = ")
        if line.startswith("  /") and equals:
            values.append({"key": key, "value": json.loads(value)})
        elif values and line.startswith("      source: "):
            values[-1]["source"] = line.strip()[len("source: "):]
        elif values and line.startswith("      "):
            values[-1]["meaning"] = line.strip()
    return Explanation({"name": str(name), "text": text, "values": values})


def import_trace(files: Union[Path, Sequence[Path]], *, out: Optional[Path] = None, format: Optional[str] = None,
                 scenario: Union[Path, Mapping, None] = None, topology: Optional[Path] = None, gemm: Optional[Gemm] = None,
                 kernels: Optional[Path] = None, out_scenario: Optional[Path] = None, out_workload: Optional[Path] = None,
                 collective: Optional[str] = None, peer_copies: Optional[str] = None,
                 iteration: Union[str, int, None] = None, system: Optional[str] = None) -> Result:
    """A measured case of a profiler's trace: `sim import`.

    files: traces of one recording, or a folder of them. scenario: the run config that was recorded; left out, the run that
    is recognised. out, out_scenario, out_workload: files to write as well. gemm, topology, collective, peer_copies,
    iteration: see `sim import --help`.
    Returns makespan_us, spans, the recognised scenario, and what `sim import` says in "summary". Raises UserError.

    >>> import_trace("traces/h200_2/profiler")["makespan_us"]
    """
    with Files() as own:
        written = plain(out) or own.path("case.json", "case.json")
        summary = _text(own, ["import", *words({
            "out": written, "format": format, "topology": topology, "gemm": shape_word(gemm), "kernels": kernels,
            "scenario": own.json(plain(scenario), "scenario"), "out_scenario": out_scenario, "out_workload": out_workload,
            "collective": collective, "peer_copies": peer_copies, "iteration": iteration, "system": system}), "--", *as_list(files)])
        with open(written, encoding="utf-8") as case:
            return Result({**json.load(case), "summary": summary})


def sweep(config: Union[Mapping, str], workers: int = 0) -> Columns:
    """A design space: the columns of points.csv of `sim sweep`.

    config: a sweep config (configs/schema/sweep.schema.json), or the name of a shipped sweep. workers: points that run in
    parallel; 0: all cores. Returns {column: [value of each point]}; numbers are int or float, empty cells None.
    Raises UserError.

    >>> sweep({"base": {"topology": "h200_8"}, "axes": {"schedule": ["serial", "shard_p2p"]}}).to_frame()
    """
    config = plain(config)
    if isinstance(config, dict):
        config = {"schema": 1, "name": "sweep", **config}
    header, *rows = csv.reader(io.StringIO(_overlap.sweep(json.dumps(config), workers)))
    return Columns({name: [_value(row[i]) for row in rows] for i, name in enumerate(header)})


def _run_config(config: Any) -> Any:
    given = plain(config)
    if isinstance(given, dict) and "workload" in given:
        given["workload"] = workload_of(given["workload"])
    return given


def _is_operator_list(config: str) -> bool:
    if os.path.isfile(config):
        try:
            with open(config, encoding="utf-8") as file:
                read = json.load(file)
        except (OSError, ValueError):
            return False  # sim model says what is wrong
        return isinstance(read, dict) and "operators" in read
    listed = {kind: _overlap.command(["list", kind])[0].split() for kind in ("models", "workloads")}
    return config not in listed["models"] and config in listed["workloads"]


def _text(files: Files, command: List[str], partly: bool = False) -> str:
    text, mistake = _overlap.command(command)
    if mistake and not (partly and text):
        raise UserError(files.called(mistake))
    return text


def _json(files: Files, command: str, flags: Mapping, positional: Sequence[str] = (), partly: bool = False) -> Any:
    command_line = [*([command] if command else []), *words(flags), "--format=json"]
    return json.loads(_text(files, command_line + (["--", *positional] if positional else []), partly))


def _value(cell: str) -> Any:
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell or None
