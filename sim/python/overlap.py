"""Simulates compute/communication overlap on several GPUs: `sim`, with dicts for its JSON.

A mistake in what is given raises UserError, a ValueError, with the line that `sim` would print. Calls release Python's
lock and may run in threads. Files that a config names are read at each call; files of the installation once.
"""
import csv
import io
import json

import _overlap

UserError = _overlap.UserError
UserError.__module__ = __name__
__version__ = _overlap.version


def run(config):
    """The result of a run config, as `sim --config FILE --format json` prints it."""
    return json.loads(_overlap.run(json.dumps(config)))


def sweep(config, workers=0):
    """The columns of points.csv of a sweep config, or of the sweep of that name: {column: [value of each point]}.

    Numbers are int or float, empty cells None. `workers`: points that run in parallel; 0: all cores.
    """
    if isinstance(config, dict):
        config = {"schema": 1, "name": "sweep", **config}
    header, *rows = csv.reader(io.StringIO(_overlap.sweep(json.dumps(config), workers)))
    return {name: [_value(row[i]) for row in rows] for i, name in enumerate(header)}


def advise(config, top=5, agents=(), kernels="any"):
    """`sim advise --format json` for the topology, workload, what-if and seeds of a run config. The advice for an
    operator list has a schedule for each pair, and the run config with all of them, in "pairs".

    `agents`: only candidates that copy by "dma", or by "cu"; `kernels`: "any" or "library".
    """
    if kernels not in ("any", "library"):
        raise UserError(f"kernels is {kernels!r} (allowed: any, library)")
    if not set(agents) <= {"dma", "cu"}:
        raise UserError(f"agents is {agents!r} (allowed: dma, cu)")
    if not 1 <= top <= 1000:
        raise UserError(f"top is {top} (allowed: 1 to 1000)")
    return json.loads(_overlap.advise(json.dumps(config), top, list(agents), kernels == "any"))


def compare(traces, tolerances="", cost_models=()):
    """`sim compare --format json` of measured cases: files, folders or patterns. Cases without a prediction are listed
    in "not_predicted", claims with their standing in "verdicts"."""
    paths = [traces] if isinstance(traces, str) else [str(path) for path in traces]
    return json.loads(_overlap.compare(paths, str(tolerances), list(cost_models)))


def _value(cell):
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell or None
