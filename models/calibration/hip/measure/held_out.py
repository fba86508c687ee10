"""A fifth of the families, drawn by the seed: measured like the others, and kept from every fit."""
import random

import lists

BASES = {("local_copy", "copy", "pull"), ("peer_copy", "pair", "pull"), ("memory", "read", "pull")}  # of all other copies


def odd(number):
    while number % 2 == 0:
        number //= 2
    return number


def gemm_families():
    """(N, odd factor of K), as the fits tell families apart."""
    return sorted({(n, odd(k)) for _, shapes in lists.FAMILIES for n, k in shapes})


def copy_families(gpus):
    """(kind, pattern or operation, agent, transfer); the plain ones that every fit starts from are never drawn."""
    families = [("local_copy", operation, agent, "pull") for operation in ("copy", "pack", "scatter") for agent in ("dma", "cu")]
    families += [("memory", operation, "cu", "pull") for operation in ("read", "write", "triad", "reduce")]
    patterns = (["pair", "both_ways"] if gpus > 1 else []) + (
        ["one_with_all", "all_with_one", "ring", "all_at_once", "rotation"] if gpus > 2 else [])
    families += [("peer_copy", pattern, agent, transfer) for pattern in patterns for agent in ("dma", "cu")
                 for transfer in ("pull", "push")]
    return [family for family in families if (family[0], family[1], family[3]) not in BASES]


def fifth(families, at_random):
    return sorted(at_random.sample(families, max(1, round(len(families) / 5))))


def drawn(gpus, seed):
    """The manifest's `held_out`."""
    at_random = random.Random(f"{seed} held out")
    gemms = [{"n": n, "odd_factor_of_k": k} for n, k in fifth(gemm_families(), at_random)]
    copies = [{"kind": kind, "operation" if kind != "peer_copy" else "pattern": name,
               **({"agent": agent} if kind != "memory" else {}),
               **({"transfer": transfer} if kind == "peer_copy" else {})}
              for kind, name, agent, transfer in fifth(copy_families(gpus), at_random)]
    return {"gemm": {"kinds": ["gemm", "sustained", "energy"], "families": gemms}, "copies": copies,
            "files": ["drawn.jsonl", "replays.jsonl"]}
