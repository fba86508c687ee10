"""Times that were measured in turns, on a host whose cores others use, too."""
import math
import statistics


def fastest(turns):
    """The faster three fifths of `turns`, lists of times of one call, in their order. While others use a host's cores, its calls take up to
    twice as long, for seconds: on five hosts in up to two of five turns. Times that the GPU decides differ by 1 to 4 % between turns."""
    medians = [statistics.median(turn) for turn in turns]
    limit = sorted(medians)[math.ceil(0.6 * len(turns)) - 1]
    return [turn for turn, median in zip(turns, medians) if median <= limit]
