#!/usr/bin/env python3
"""Tables of errors for README.md and notes.md, from the shipped calibrations (run it from the root of the repository).

error_tables.py public    one line for each fit to a public table of GEMMs: errors of kernels of 20 us and more
error_tables.py DEVICE    one line for each class of DEVICE's measurements, held out in folds by family
error_tables.py kernels   one line for each fit to a public table of attention or MoE kernels
error_tables.py repeatability TABLE.csv
                          of fused MoE: how much power laws of 1.01 and 1.2 of tokens, nearly the same work, differ
                          beyond the median ratio, in kernels of 20 us and more
error_tables.py --json    provenance of every fit of GEMMs, by device and type; errors of GEMMs and collectives beside each other
"""
import collections
import csv
import json
import pathlib
import statistics
import sys

FOLDER = pathlib.Path("configs/calibrations")


def row(*cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |"


def heading(*cells):
    return [row(*cells), "|" + "---|" * len(cells)]


def percent(provenance, key):
    return f"{provenance[key]:.1f}" if key in provenance else ""


def public_row(device, dtype, of, provenance):
    return row(device, dtype, of, provenance["rows_held_out"], provenance["families_held_out"],
               percent(provenance, "mean_error_fitted_pct"),
               percent(provenance, "mean_error_held_out_pct"), percent(provenance, "p90_error_held_out_pct"),
               percent(provenance, "mean_error_cross_validated_pct"), percent(provenance, "p90_error_cross_validated_pct"))


def public():
    lines = heading("device", "type", "kernels of", "rows held out", "families", "fitted, mean %", "held out, mean %", "p90 %",
                    "four folds, mean %", "p90 %")
    for path in sorted(FOLDER.glob("*.json")):
        calibration = json.loads(path.read_text(encoding="utf-8"))
        for dtype, group in calibration["gemm"].items():
            provenance = group["provenance"]
            if "rows_held_out" not in provenance:
                continue
            known = provenance.get("library_known")
            lines.append(public_row(path.stem, dtype, "a mix of libraries" if known else "one library", provenance))
            if known:
                lines.append(public_row(path.stem, dtype, "a library that is known", {**provenance, **known}))
        for library, types in calibration.get("gemm_libraries", {}).items():
            for dtype, group in types.items():
                if "rows_held_out" in group["provenance"]:
                    lines.append(public_row(path.stem, dtype, library, group["provenance"]))
    return lines


def fits(calibration):
    """(name, provenance) of every fit that has classes."""
    for dtype, group in calibration["gemm"].items():
        yield f"GEMMs, {dtype}", group["provenance"]
    for group in calibration.values():
        if isinstance(group, dict) and "provenance" in group:
            yield from ((name, one) for name, one in group["provenance"].items() if isinstance(one, dict))


def measured(device):
    lines = heading("fit", "class", "n", "fitted, mean %", "held out, mean %", "p90 %", "bias %")
    calibration = json.loads((FOLDER / f"{device}.json").read_text(encoding="utf-8"))
    for name, provenance in fits(calibration):
        for label, errors in provenance.get("classes", {}).items():
            shown = "… " + label.strip() if label.startswith(" ") else label
            lines.append(row(name, shown, errors["count"], percent(errors, "mean_error_fitted_pct"),
                             percent(errors, "mean_error_held_out_pct"), percent(errors, "p90_error_held_out_pct"),
                             percent(errors, "bias_held_out_pct")))
            name = ""
    return lines


def kernels():
    lines = heading("device", "kernels", "format", "rows held out", "families", "fitted, mean %", "held out, mean %", "p90 %", "bias %",
                    "four folds, mean %", "rows left out", "mean %")
    for group in ("attention_prefill", "attention_decode", "moe"):
        for path in sorted(FOLDER.glob("*.json")):
            for name, fit in json.loads(path.read_text(encoding="utf-8")).get(group, {}).items():
                provenance = fit["provenance"]
                if "rows_held_out" not in provenance:
                    continue
                passes = [(group.replace("_", " "), provenance)]
                if "backward" in provenance:
                    passes.append(("attention backward", provenance["backward"]))
                for kernels, errors in passes:
                    lines.append(row(path.stem, kernels, name, errors["rows_held_out"], errors["families_held_out"],
                                     percent(errors, "mean_error_fitted_pct"), percent(errors, "mean_error_held_out_pct"),
                                     percent(errors, "p90_error_held_out_pct"), percent(errors, "bias_held_out_pct"),
                                     percent(errors, "mean_error_cross_validated_pct"),
                                     errors.get("rows_left_out", ""), percent(errors, "mean_error_left_out_pct")))
    return lines


def repeatability(table):
    lines = heading("kernel", "format", "families", "pairs of rows", "mean %", "p90 %")
    times = collections.defaultdict(dict)
    with open(table, encoding="utf-8") as file:
        for one in csv.DictReader(file):
            case = tuple(one[key] for key in ("hidden", "inter", "topk", "experts", "tp", "ep", "tokens"))
            times[one["kernel"], one["dtype"]][case, one["distribution"]] = float(one["us"])
    for (kernel, dtype), rows in sorted(times.items()):
        pairs = [(us, rows[case, "power_law_1.2"]) for (case, law), us in rows.items()
                 if law == "power_law_1.01" and (case, "power_law_1.2") in rows]
        ratios = [a / b for a, b in pairs if min(a, b) >= 20]
        middle = statistics.median(ratios)
        off = sorted(100 * abs(ratio / middle - 1) for ratio in ratios)
        lines.append(row(kernel.strip("_"), dtype, len({case[:4] for case, _ in rows}), len(off), f"{sum(off) / len(off):.1f}",
                         f"{off[int(0.9 * len(off))]:.1f}"))
    return lines


def beside_library(fit):
    """{class: mean error held out, %} of GEMMs and a library's collectives beside each other."""
    classes = fit.get("interference", {}).get("provenance", {}).get("library beside GEMMs", {}).get("classes", {})
    return {name: errors["mean_error_held_out_pct"] for name, errors in classes.items()}


def as_json():
    fits = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in FOLDER.glob("*.json")}
    return [json.dumps({device: {dtype: group["provenance"] for dtype, group in fit["gemm"].items()} |
                        {"beside": beside_library(fit)} for device, fit in fits.items()})]


if __name__ == "__main__":
    what, *table = sys.argv[1:]
    tables = {"public": public, "kernels": kernels, "repeatability": lambda: repeatability(*table), "--json": as_json}
    print("\n".join(tables[what]() if what in tables else measured(what)))
