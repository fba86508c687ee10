"""Joins the pieces to files of results, and packs them with a manifest: all that a machine without GPUs needs."""
import gzip
import hashlib
import io
import json
import tarfile

from .folder import SCHEMA, compact, whole_lines, write

KEPT_OUT = {"pieces", "build", "measure.lock", "state.json"}


def order(row):
    fields = json.loads(row)
    return fields.get("pass", 0), fields.get("case_line", fields.get("plan", 0))


def join(folder):
    """Writes FILE.jsonl for each file: facts of the machine, then each case of each pass once."""
    facts = folder.state["facts"]
    rows = {}
    for piece in folder.pieces:
        rows.setdefault(piece.file, []).extend(whole_lines(folder.rows_of(piece)))
    reference = folder.rows / "reference.jsonl"
    rows["reference"] = list(whole_lines(reference))
    for file, found in rows.items():
        path = folder.path / f"{file}.jsonl"
        if not found:
            path.unlink(missing_ok=True)
            continue
        first = compact({**facts, "command": f"scripts/measure: {file}"})
        write(path, "\n".join([first] + sorted(found, key=order)) + "\n")


def counts(folder, piece):
    """{"cases", "measured", "skipped", "failed"}."""
    rows = [json.loads(row) for row in whole_lines(folder.rows_of(piece))]
    skipped, failed = (sum(key in row for row in rows) for key in ("skipped", "error"))
    return {"cases": piece.end - piece.begin, "measured": len(rows) - skipped - failed, "skipped": skipped, "failed": failed}


def state_of(folder, piece, count):
    if count["measured"] + count["skipped"] + count["failed"] >= count["cases"]:
        return "done"
    if reason := folder.state["skipped"].get(piece.name):
        return f"skipped: {reason}"
    return "cut by the time limit" if folder.state["cut"] else "not done"


def manifest(folder, warnings):
    state = folder.state
    pieces = []
    for piece in folder.pieces:
        count = counts(folder, piece)
        pieces.append({"name": piece.name, "file": f"{piece.file}.jsonl", "stage": piece.stage, "pass": piece.number,
                       "state": state_of(folder, piece, count), **count})
    pieces += [{"name": file, "file": f"{file}.jsonl", "state": f"skipped: {reason}"}
               for file, reason in state["machine_skips"].items()]
    return {"schema": SCHEMA, "kind": "measured_machine", **{key: state[key] for key in (
        "date", "project", "command", "seed", "minutes_given", "seconds_used", "facts", "host", "versions", "held_out")},
            "pieces": pieces, "warnings": warnings,
            "sha256": {name: hashlib.sha256((folder.path / name).read_bytes()).hexdigest()
                       for name in names(folder) if name != "manifest.json"}}


def names(folder):
    """Files of the archive, relative to OUT, in order."""
    return sorted(str(path.relative_to(folder.path)) for path in folder.path.rglob("*")
                  if path.is_file() and not path.name.endswith(".part")
                  and path.relative_to(folder.path).parts[0] not in KEPT_OUT)


def pack(folder, target):
    """Writes the archive; the same files give the same bytes."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name in names(folder):
            content = (folder.path / name).read_bytes()
            entry = tarfile.TarInfo(f"{folder.path.name}/{name}")
            entry.size, entry.mode = len(content), 0o644
            tar.addfile(entry, io.BytesIO(content))
    part = target.with_name(target.name + ".part")
    with open(part, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as out:
        out.write(data.getvalue())
    part.replace(target)


def finish(folder, target, warnings):
    join(folder)
    write(folder.path / "manifest.json", json.dumps(manifest(folder, warnings), indent=1, ensure_ascii=False) + "\n")
    pack(folder, target)
