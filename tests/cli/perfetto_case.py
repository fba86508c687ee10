"""Writes Perfetto traces as rocprofv3 --output-format pftrace does: one writer, whose names stand in the packet that first needs them."""


def number(value):
    """A varint."""
    out = b""
    while value >= 128:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def field(place, value):
    """A field of Protocol Buffers: a number, or bytes or a text behind their length."""
    if isinstance(value, int):
        return number(place << 3) + number(value)
    value = value.encode() if isinstance(value, str) else value
    return number(place << 3 | 2) + number(len(value)) + value


def packet(*fields):
    return field(1, b"".join(fields))


class Writer:
    """The packets of one sequence."""
    CATEGORIES, NAMES, ANNOTATIONS = 1, 2, 3  # fields of InternedData

    def __init__(self, sequence, first=1):
        self.id, self.first = field(10, sequence), first
        self.interned = {}

    def cleared(self):
        """The packet behind which names are given anew."""
        self.interned = {}
        return packet(field(8, 5), self.id, field(13, 1), field(42, 1))

    def track(self, uuid, name):
        return packet(self.id, field(13, 2), field(60, field(1, uuid) + field(2, name)))

    def interning(self, kind, text, new):
        known = self.interned.setdefault(kind, {})
        if text not in known:
            known[text] = self.first + len(known)
            new.append(field(kind, field(1, known[text]) + field(2, text)))
        return known[text]

    def slice(self, category, name, track, begin, end, annotations):
        """A slice's begin, with its names behind it, and its end."""
        new = []
        event = field(9, 1) + field(11, track) + field(3, self.interning(self.CATEGORIES, category, new)) + \
            field(10, self.interning(self.NAMES, name, new)) + number(47 << 3 | 1) + bytes(8)  # a flow
        for key, value in {"begin_ns": begin, "end_ns": end, "delta_ns": end - begin, **annotations}.items():
            event += field(4, field(1, self.interning(self.ANNOTATIONS, key, new)) + field(3 if isinstance(value, int) else 6, value))
        start = packet(field(8, begin), self.id, field(11, event), field(13, 2), *([field(12, b"".join(new))] if new else []))
        return start + packet(field(8, end), self.id, field(11, field(9, 2) + field(11, track)), field(13, 2))


def rocprof_trace(kernels=(), copies=(), calls=(), agent="Agent-{}"):
    """`kernels`: (agent, stream, name, start, end in ns); `copies`: (from, to, direction, bytes, start, end); `calls`: (function, start, end)."""
    main, other = Writer(2), Writer(3, first=2)  # the same numbers, of other names
    out = [packet(field(6, b""), field(33, b"\x0a\x04"), field(10, 1)), main.cleared(), other.cleared()]
    out += [main.track(10 + stream, f'STREAM [" {stream} "] ') for stream in sorted({kernel[1] for kernel in kernels})]
    out += [other.slice("hip_api", "hipLaunchKernel", 1, 10, 20, {"tid": 7, "corr_id": 1})]
    out += [main.slice("rccl_api", name, 1, start, end, {"tid": 7, "corr_id": 1}) for name, start, end in calls]

    def named(one):
        return agent.format(one) if agent else one
    for source, to, direction, size, start, end in copies:
        out.append(main.slice("memory_copy", direction, 10, start, end, {
            "src_agent": named(source), "dst_agent": named(to), "copy_bytes": size, "corr_id": 2, "tid": 7}))
    out.append(main.cleared())
    for place, stream, name, start, end in kernels:
        out.append(main.slice("kernel_dispatch", name, 10 + stream, start, end, {
            "agent": named(place), "corr_id": 3, "queue": 0, "tid": 7, "kernel_id": 5, "workgroup_size": 256, "grid_size": 65536,
            **({"stream_ID": stream} if agent else {})}))
    return b"".join(out)
