"""Times that were measured in turns, on hosts whose cores others use, too."""


def undisturbed(turns):
    """Those of `turns` (µs of one call, measured at several times) that are at most a tenth above the least. Where others use the
    host's cores, its calls take up to twice as long for seconds: on two shared hosts in 4 of 10 turns. A turn that waits for the GPU
    differs by 3 %."""
    return [turn for turn in turns if turn <= 1.1 * min(turns)]
