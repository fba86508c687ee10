"""Python's values, numpy's and pandas's among them, as JSON and as words of a command line."""
import json
import os
import tempfile
from collections.abc import Mapping, Set
from typing import Any, List

from ._overlap import UserError


def plain(value: Any, where: str = "") -> Any:
    """`value` in dicts, lists, strings and numbers. Raises UserError with the JSON pointer of what has no such form."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            raise UserError(f"{where or '/'}: is {number}, expected a number")
        return number
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return {str(plain(key, where)): plain(one, f"{where}/{key}") for key, one in value.items()}
    if hasattr(value, "to_dict") and hasattr(value, "columns"):  # a pandas.DataFrame: its rows
        return plain(value.to_dict("records"), where)
    if hasattr(value, "to_dict") and hasattr(value, "index"):  # a pandas.Series, such as a row
        named = getattr(value.index, "dtype", None) == object
        return plain(value.to_dict() if named else value.tolist(), where)
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        return plain(value.tolist(), where)
    if isinstance(value, (list, tuple, range, Set)) or hasattr(value, "__next__"):
        items = sorted(value) if isinstance(value, Set) else value
        return [plain(one, f"{where}/{i}") for i, one in enumerate(items)]
    raise UserError(f"{where or '/'}: is of type {type(value).__name__}, expected what JSON can hold")


def as_list(value: Any) -> List[Any]:
    """A list, where one thing may stand for a list of one."""
    value = plain(value)
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def workload_of(value: Any) -> Any:
    """A workload of a run config: a name, a file, a dict, a list of operators, or a result of model()."""
    if isinstance(value, Mapping) and isinstance(value.get("workload"), Mapping):
        value = value["workload"]
    value = plain(value, "/workload")
    return {"operators": value} if isinstance(value, list) else value


def shape_word(gemm: Any) -> Any:
    """MxNxK of a text, of three numbers or of a dict with m, n, k."""
    gemm = plain(gemm, "/gemm")
    if isinstance(gemm, dict):
        if not {"m", "n", "k"} <= set(gemm):
            raise UserError(f"gemm: is {gemm!r}, expected m, n and k")
        gemm = [gemm["m"], gemm["n"], gemm["k"]]
    if isinstance(gemm, list):
        if len(gemm) != 3:
            raise UserError(f"gemm: is {gemm!r}, expected three numbers (m, n, k)")
        return "x".join(map(str, gemm))
    return gemm


class Files:
    """Files for what a command reads from one, and names of files that it writes; gone after `with`."""

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="overlap-")
        self._names = {}
        return self

    def __exit__(self, *_):
        self._folder.cleanup()

    def path(self, name: str, called: str) -> str:
        path = os.path.join(self._folder.name, name)
        self._names[path] = called
        return path

    def json(self, value: Any, called: str) -> Any:
        """The file with a dict or list; names and paths as they are."""
        if not isinstance(value, (dict, list)):
            return value
        path = self.path(called + ".json", called)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(value, file)
        return path

    def table(self, value: Any, called: str) -> Any:
        """The CSV file with the rows of a DataFrame or of a list of dicts."""
        if isinstance(value, (str, os.PathLike)):
            return plain(value)
        rows = plain(value, "/" + called)
        if not rows or not all(isinstance(row, dict) for row in rows):
            raise UserError(f"{called}: expected a CSV file, a DataFrame or a list of dicts")
        path = self.path(called + ".csv", called)
        columns = list(rows[0])
        with open(path, "w", encoding="utf-8", newline="") as file:
            import csv
            writer = csv.DictWriter(file, columns, extrasaction="ignore")
            writer.writeheader()
            writer.writerows(rows)
        return path

    def called(self, text: str) -> str:
        """`text` with what the caller gave in the place of our files' names."""
        for path, name in self._names.items():
            text = text.replace(path, name)
        return text


def words(flags: Mapping) -> List[str]:
    """`{"what_if": {"a": 1}, "steady": True}` as `--what-if a=1 --steady`. None and False: not given."""
    result: List[str] = []
    for name, value in flags.items():
        flag = "--" + name.rstrip("_").replace("_", "-")
        value = plain(value, "/" + name)
        if value is None or value is False:
            continue
        if value is True:
            result.append(flag)
        elif isinstance(value, dict):
            for key, one in value.items():
                result.append(f"{flag}={key}={one if isinstance(one, str) else json.dumps(one)}")
        elif isinstance(value, list):
            result.extend(f"{flag}={one}" for one in value)
        else:
            result.append(f"{flag}={value}")
    return result
