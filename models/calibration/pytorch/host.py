"""The host file (configs/schema/host.schema.json) of the machine that calls.py and enqueued.py measured."""
import json
import statistics

from .turns import fastest

# Field of a host file: the call of calls.py that it is the time of. A collective of one rank copies instead of launching NCCL's
# kernel, so its time is a lower bound.
CALLS = {"gemm_us": "gemm", "kernel_us": "kernel", "copy_us": "copy", "collective_us": "all_gather", "event_us": "event_record",
         "wait_us": "event_wait", "stream_us": "enter_stream"}
# Mean |predicted / measured - 1| of the 28 operators of traces/h100_2/drawn_5, drawn_7 and drawn_8 whose calls take longer than their
# kernels, each machine with its own host: one host's time for the same calls varies from shape to shape.
OWN_HOST_ERROR_PCT = 10
# Schedule and collective: its operator, and its calls on r ranks as the schedule async_tp enqueues them.
OPERATORS = {
    "async_tp_all_gather": ("all_gather_gemm_async_tp", lambda r: {
        "gemm_us": r, "kernel_us": 3, "copy_us": r + 1, "event_us": 2, "wait_us": 2, "stream_us": r}),
    "async_tp_reduce_scatter": ("gemm_reduce_scatter_async_tp", lambda r: {
        "gemm_us": r, "kernel_us": 2 * r + 2, "copy_us": r - 1, "event_us": 2, "wait_us": 2, "stream_us": r}),
}


def host_of(machine, rows):
    """The host file of `rows`; none where calls were not measured. A measured operator takes what its calls take and a rest."""
    calls = {row["call"]: row["host_us"] for row in rows if row["kind"] == "host_call"}
    if not set(CALLS.values()) <= set(calls):
        return None
    host = {"schema": 1, "name": "pytorch_eager",
            "description": f"PyTorch {machine['pytorch']}, eager, as measured on {machine['date']} on the host of {machine['device']}."}
    for field, call in CALLS.items():
        host[field] = {"value": calls[call], "source": f"measured: {machine['command']}, {call}"}
    operators = {}
    for name, (operator, counts) in OPERATORS.items():
        of_operator = [row for row in rows if row["kind"] == "host_operator" and row["operator"] == operator]
        # Loops of all processes of as many ranks; older rows have one time, or a burst's.
        times = [us for row in of_operator if row["ranks"] == of_operator[-1]["ranks"]
                 for us in row.get("loops_us", [row.get("loop_us", row["host_us"])])]
        if times:
            took = round(statistics.median(sum(fastest([[us] for us in times]), [])), 1)
            of_calls = sum(count * host[field]["value"] for field, count in counts(of_operator[-1]["ranks"]).items())
            operators[name] = {"value": round(max(took - of_calls, 0), 1),
                               "source": f"measured: {machine['command']}, {took} us less its calls, {of_calls:.0f}"}
    return host | ({"operators_us": operators, "error_pct": OWN_HOST_ERROR_PCT} if operators else {})


def write_host(measured, out):
    """Writes the host file of `measured`, a file of scripts/measure_pytorch, to `out`, if its host was measured."""
    with open(measured, encoding="utf-8") as lines:
        machine, *rows = map(json.loads, lines)
    host = host_of(machine, rows)
    if host is not None:
        with open(out, "w", encoding="utf-8") as file:
            file.write(json.dumps(host, indent=2) + "\n")
