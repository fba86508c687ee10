"""Results: dicts that notebooks show as a short table and that become a pandas.DataFrame."""
import html
from typing import Any, Dict, List

MOST_ROWS = 20


class Result(dict):
    """What a function of `overlap` returns: the dict of `sim --format json`, with units in the keys.

    `to_frame()` gives its rows as a pandas.DataFrame; `rows()` as dicts, without pandas.
    """

    def rows(self) -> List[Dict[str, Any]]:
        """The rows of the table: the choices of advise(), the operators of model(), the cases of compare(), ...; of one
        run or price a single row. Members of members are named with a dot: losses_us.launch."""
        table = next((self[key] for key in ROWS if isinstance(self.get(key), list) and self[key]), None)
        if table is None:
            return [_flat(self)]
        return [_flat(row) if isinstance(row, dict) else {"value": row} for row in table]

    def to_frame(self):
        """rows() as a pandas.DataFrame. Raises ImportError where pandas is not installed."""
        return _pandas().DataFrame(self.rows())

    def _table(self) -> List[Dict[str, Any]]:
        rows = self.rows()
        if len(rows) == 1:
            values = [{"": key, "value": value} for key, value in rows[0].items() if not isinstance(value, (list, dict))]
            return sorted(values, key=lambda row: row[""].startswith("config."))  # first what the run gave
        return rows

    def _repr_html_(self) -> str:
        rows = self._table()
        columns = [key for key in dict.fromkeys(key for row in rows[:MOST_ROWS] for key in row)
                   if not any(isinstance(row.get(key), (list, dict)) for row in rows[:MOST_ROWS])][:12]
        head = "".join(f"<th>{html.escape(str(key))}</th>" for key in columns)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_shown(row.get(key)))}</td>" for key in columns) + "</tr>"
                       for row in rows[:MOST_ROWS])
        more = f"<p>{len(rows) - MOST_ROWS} more</p>" if len(rows) > MOST_ROWS else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"

    def __repr__(self) -> str:
        return f"<overlap.{type(self).__name__}: {self._line()}>"

    def _line(self) -> str:
        told = [f"{key} {_shown(self[key])}" for key in self if isinstance(self[key], (int, float, str))][:6]
        return ", ".join(told + [f"{len(self[key])} {key}" for key in self if isinstance(self[key], list)][:4])

    def _repr_pretty_(self, printer, cycle):
        printer.text(repr(self))


class Columns(Result):
    """Columns of a sweep: {name: [value of each point]}."""

    def rows(self) -> List[Dict[str, Any]]:
        return [dict(zip(self, row)) for row in zip(*self.values())]

    def _table(self) -> List[Dict[str, Any]]:
        return self.rows()

    def to_frame(self):
        return _pandas().DataFrame(dict(self))

    def _line(self) -> str:
        return f"{len(next(iter(self.values()), []))} points of {len(self)} columns"


class Explanation(Result):
    """What explain() tells: `str()` is the text that `sim explain` prints."""

    def __str__(self) -> str:
        return self["text"]

    def _line(self) -> str:
        return self["text"].splitlines()[0]


class Step(Result):
    """What model() tells; a row for each number of tokens."""

    def rows(self) -> List[Dict[str, Any]]:
        return [{key: value for key, value in step.items() if not isinstance(value, (list, dict))} for step in self["steps"]]


class Advice(Result):
    """What advise() tells; a row for each choice, fastest first."""

    def rows(self) -> List[Dict[str, Any]]:
        rows = []
        for run in self["best"]:
            config = run["config"]
            rows.append({"schedule": config["schedule"], **{key: value for key, value in config.get("params", {}).items()},
                         **{key: value for key, value in run.items() if isinstance(value, (int, float))}})
        return rows

    def _table(self) -> List[Dict[str, Any]]:
        return self.rows()


ROWS = ("rows", "values", "cases", "spans", "items")


def _flat(members: Dict[str, Any], before: str = "") -> Dict[str, Any]:
    flat: Dict[str, Any] = {}
    for key, value in members.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{before}{key}."))
        else:
            flat[before + key] = value
    return flat


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.5g}" if abs(value) < 1e5 else f"{value:.0f}"
    return "" if value is None else str(value)


def _pandas():
    try:
        import pandas
    except ImportError:
        raise ImportError("to_frame() needs pandas (Debian: python3-pandas); rows() gives dicts without it") from None
    return pandas
