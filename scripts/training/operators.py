"""Lists of operators in the format of configs/workloads."""
import json


class OperatorList:
    """Operators of one GPU in the order in which they are enqueued. `needs` are names; None: the one before."""

    def __init__(self):
        self.operators = []

    def add(self, name, needs, **work):
        if needs is None:
            needs = [self.operators[-1]["name"]] if self.operators else []
        self.operators.append({"name": name, **work, "needs": needs})

    def gemm(self, name, m, n, k, dtype, batch=1, needs=None):
        self.add(name, needs, type="gemm", m=m, n=n, k=k, dtype=dtype, **({"batch": batch} if batch > 1 else {}))

    def stream(self, name, read_bytes, write_bytes, needs=None):
        self.add(name, needs, type="memory_bound", read_bytes=read_bytes, write_bytes=write_bytes)

    def collective(self, name, kind, operand_bytes, dtype, needs=None):
        self.add(name, needs, type="collective", collective=kind, bytes=operand_bytes, dtype=dtype)


def text(value, indent=0):
    """JSON with an operator a line."""
    pad, inner = "  " * indent, "  " * (indent + 1)
    if isinstance(value, dict) and "type" not in value and "tolerance" not in value and value:
        members = (f"{inner}{json.dumps(key)}: {text(member, indent + 1)}" for key, member in value.items())
        return "{\n" + ",\n".join(members) + f"\n{pad}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(inner + text(v, indent + 1) for v in value) + f"\n{pad}]"
    return json.dumps(value)
