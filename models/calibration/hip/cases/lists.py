"""Lists of cases for microbench, each a function of the machine. The format is described in ../README.md."""
import dataclasses
import random


# Operators: N local to a GPU and K, of C[M,N] = A[M,K] B[K,N]. Widths from the models' papers; TP = tensor parallel.
FAMILIES = [
    ("Llama 3 8B, TP 4: QKV, out, gate and up, down", [(1536, 4096), (4096, 1024), (7168, 4096), (4096, 3584)]),
    ("Llama 3 8B, TP 8: gate and up, down", [(3584, 4096), (4096, 1792)]),
    ("Llama 3 70B, TP 4: QKV, out, gate and up, down", [(2560, 8192), (8192, 2048), (14336, 8192), (8192, 7168)]),
    ("Llama 3 70B, TP 8: QKV, out, gate and up, down", [(1280, 8192), (8192, 1024), (7168, 8192), (8192, 3584)]),
    ("Llama 3 405B, TP 8: QKV, out, gate and up, down", [(2304, 16384), (16384, 2048), (13312, 16384), (16384, 6656)]),
    ("GPT-3 175B, TP 8: QKV, out, first and second FFN", [(4608, 12288), (12288, 1536), (6144, 12288), (12288, 6144)]),
    ("DeepSeek-V3 expert, Qwen3-235B expert: gate and up, down", [(4096, 7168), (7168, 2048), (3072, 4096), (4096, 1536)]),
    ("no operator: square, thin, wide, odd", [(5120, 5120), (640, 12288), (9984, 3072), (3328, 2880)]),
]
# Projections of models as they are, whole and on 2 to 8 GPUs: widths and heads from the shipped models (configs/models).
PROJECTIONS = [(4096, 2048), (6144, 4096), (4096, 7168), (14336, 4096), (8192, 4096), (10240, 8192), (8192, 14336), (28672, 8192),
               (5120, 6400), (25600, 5120), (3584, 9472), (18944, 3584), (11008, 4096), (4096, 5504), (12288, 4096), (29568, 8192)]
FEW_ROWS = (1, 4, 8, 16, 24, 32, 48, 96, 192, 384)  # tokens that are generated at once
GATHERED = [1024 << i for i in range(6)]  # M, rows after the gather: 1024 ... 32768
SIZES = "4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,64MiB,256MiB,1GiB"
BLOCKS = "4,8,16,32"
BESIDE = ["1024 n=2560 k=8192", "4096 n=2560 k=8192", "8192 n=7168 k=8192", "8192 n=8192 k=1024", "16384 n=2304 k=16384"]
# More of them, which no fit has.
MORE = ["2048 n=2560 k=8192", "2048 n=7168 k=8192", "4096 n=5120 k=5120", "8192 n=2560 k=8192", "4096 n=4608 k=12288",
        "1024 n=7168 k=4096", "512 n=2560 k=8192"]
# Looked at last.
UNSEEN = ["8192 n=3584 k=8192", "3072 n=4096 k=6144", "16384 n=5120 k=4096", "2048 n=8192 k=2048", "1536 n=16384 k=4096",
          "6144 n=6144 k=12288"]


@dataclasses.dataclass(frozen=True)
class Machine:
    """What the lists depend on. They may hold cases that a small machine can't run: see single.py."""
    gpus: int
    units: int  # SMs or CUs of a GPU

    def left(self, kept):
        """Units that a GEMM has if `kept` are kept from it; of the 132 of an H200: 128, 124, 116, 100."""
        return max(1, self.units - kept)

    def half(self):
        return max(1, self.units // 2)

    def blocks(self, *counts):
        """Counts of thread blocks, and one a unit."""
        return commas([count for count in counts if count < self.units] + [self.units])

    def peers(self):
        """Counts of peers that are busy at once."""
        return commas([1, max(1, self.gpus - 1)])


def draw(seed, known):
    """A shape of each family that is in none of the lists."""
    at_random = random.Random(seed)
    return [at_random.choice([shape for n, k in shapes for m in GATHERED[:5] if (shape := f"{m} n={n} k={k}") not in known])
            for _, shapes in FAMILIES]


DRAWN = draw(20261122, BESIDE + MORE + UNSEEN)
REDRAWN = draw(20261123, BESIDE + MORE + UNSEEN + DRAWN)
GEMM_US = dict(zip(BESIDE + MORE, [61, 219, 1212, 198, 1567, 115, 310, 300, 430, 640, 95, 35]))  # on an H200, roughly
ROWS = [("1KiB", "8KiB"), ("2KiB", "16KiB"), ("4KiB", "16KiB"), ("8KiB", "32KiB")]


def commas(numbers):
    return ",".join(str(n) for n in sorted(set(numbers)))


def drawn_side(at_random, low, high):
    """A multiple of 256 between two powers of two; as many of each magnitude."""
    return 256 * max(1, round(2 ** at_random.uniform(low, high) / 256))


def gemm(machine):
    # Parts of M rows on P = 2 and 4 GPUs: M/2, M/P, M/2P, M/P^2 (powers of two again) and (P-1)M/P^2 (3M/16);
    # K/P with accumulation.
    parts = [m // d for m in GATHERED for d in (1, 2, 4, 8, 16)]
    yield "# Library GEMMs: operators, and the parts that schedules cut them into. A few M that are no power of two."
    for name, shapes in FAMILIES:
        yield f"# {name}"
        for n, k in shapes:
            yield f"gemm n={n} k={k} m={commas(parts)}"
            yield f"gemm n={n} k={k} m={commas(3 * m // 16 for m in GATHERED)}"
            yield f"gemm n={n} k={k} m=1536,5120,12288"
            yield f"gemm n={n} k={k // 2},{k // 4} m={commas(GATHERED)} beta=1"
    yield "# Few rows and weights that are not in the cache, as when tokens are generated."
    for n, k in PROJECTIONS:
        yield f"gemm n={n} k={k} m={commas(FEW_ROWS)} weights=cold"
    yield "# Sides as they come: rows of the projections, and sides that are multiples of 256."
    at_random = random.Random(20261125)
    for n, k in PROJECTIONS:
        yield f"gemm n={n} k={k} m={commas(drawn_side(at_random, 9, 13.6) for _ in range(4))}"
    for _ in range(16):
        n, k = drawn_side(at_random, 11, 14), drawn_side(at_random, 10.5, 14)
        yield f"gemm n={n} k={k} m={commas(drawn_side(at_random, 9, 14.5) for _ in range(4))}"
    yield "# Other types."
    for n, k in [(2560, 8192), (7168, 8192), (8192, 3584), (4096, 7168), (5120, 5120)]:
        yield f"gemm n={n} k={k} m=256,1024,1536,4096,8192,16384 dtype=fp16,fp8"
    yield "# Weights that are not in the cache, fewer compute units, another GPU."
    for n, k in [(2560, 8192), (7168, 4096), (8192, 3584), (1536, 4096)]:
        yield f"gemm n={n} k={k} m=64,256,1024,4096 weights=cold"
    for shape in BESIDE:
        units = [machine.left(kept) for kept in (4, 8, 16, 32)] + [machine.half()]
        yield f"gemm m={shape} units=0,{','.join(str(count) for count in dict.fromkeys(units))}"
        if machine.gpus > 1:
            yield f"gemm m={shape} gpu=1"


def local(machine):
    yield "# Within one GPU."
    yield f"local_copy agent=dma size={SIZES}"
    yield f"local_copy agent=cu blocks={machine.blocks(4, 8, 16, 32, 64)} size={SIZES}"
    for row, pitch in ROWS:
        strided = f"row={row} pitch={pitch} operation=pack,scatter size=256KiB,1MiB,4MiB,16MiB,64MiB,256MiB"
        yield f"local_copy agent=dma {strided}"
        yield f"local_copy agent=cu blocks={machine.blocks(16)} {strided}"
    some = [count for count in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256) if count <= 0.8 * machine.units]
    yield f"memory operation=read,write,triad blocks={machine.blocks(*some)} size=1GiB"
    yield f"memory operation=read,write,triad blocks={machine.blocks(16)} size=4MiB,16MiB,64MiB,256MiB"
    yield f"memory operation=reduce parts=2,4,8 blocks={machine.blocks(8, 16, 32, 64)} size=1MiB,16MiB,256MiB"
    yield "latency what=events,kernels,kernels_marked,stream_hop,host_launch"
    yield "latency what=streams_apart,mark_apart n_samples=99"
    yield "first_served m=4096 n=4096 k=4096 beside=local_cu blocks=8,32 at=start,middle"
    for shape in ["8192 n=8192 k=8192", "8192 n=2560 k=8192", "2048 n=7168 k=8192", "16384 n=2304 k=16384"]:
        yield f"sustained m={shape} duration_ms=1000"
        yield f"sustained m={shape} duration_ms=600 idle_ms=5,20,100"
    for shape in BESIDE:
        yield f"interference m={shape} beside=local_dma,local_dma_rows"
        yield f"interference m={shape} beside=local_cu blocks=8,16,32"
    for shape in BESIDE[1:3]:
        yield f"late_copy m={shape} beside=local_dma,local_dma_rows size=1MiB,16MiB"
        yield f"late_copy m={shape} beside=local_cu blocks=8,32 size=1MiB,16MiB priority=normal,high"


def two_gpus(machine):
    yield "# Copies between two GPUs."
    yield f"peer_copy agent=dma transfer=pull,push pattern=pair,both_ways size={SIZES}"
    yield f"peer_copy agent=cu blocks={BLOCKS} transfer=pull,push pattern=pair,both_ways size={SIZES}"
    yield f"peer_copy agent=cu blocks={machine.blocks(1, 2, 64)} transfer=pull,push pattern=pair size=1MiB,64MiB"
    yield "peer_copy agent=dma transfer=pull,push pattern=pair,both_ways chunks=2,4,8 size=64KiB,1MiB,4MiB,16MiB"
    yield "peer_copy agent=cu blocks=16 transfer=pull,push pattern=pair chunks=2,4,8 size=64KiB,1MiB,4MiB,16MiB"
    for row, pitch in ROWS:
        strided = f"row={row} pitch={pitch} transfer=pull,push size=256KiB,1MiB,4MiB,16MiB,64MiB,256MiB"
        yield f"peer_copy agent=dma {strided}"
        yield f"peer_copy agent=cu blocks=16 {strided}"
    yield "peer_copy agent=dma transfer=pull pattern=pair,both_ways n_samples=64 detail=0,1 size=4KiB,1MiB,64MiB"
    yield "latency what=gpu_hop,dma,dma_kernel_hop,kernel_dma_stream,flag_hop,host_dma"
    yield "sustained m=8192 n=8192 k=8192 gpus=2 duration_ms=1000"
    yield "# Beside GEMMs."
    for shape in BESIDE:
        yield f"interference m={shape} beside=dma_in,dma_out,dma_push"
        yield f"interference m={shape} beside=cu_in,cu_out,cu_push blocks=8,16,32"
        yield f"interference m={shape} beside=dma_in everywhere=1"
        yield f"interference m={shape} beside=cu_in blocks=16 everywhere=1"
    for shape in BESIDE[1:3]:
        yield f"interference m={shape} beside=dma_in,dma_push size=1MiB,4MiB,16MiB,256MiB"
        yield f"interference m={shape} beside=cu_in blocks=16 size=4MiB,16MiB,256MiB"
        yield f"interference m={shape} beside=dma_in first=copy,gemm"
        yield f"interference m={shape} beside=cu_in,cu_push blocks=16 first=both,copy,gemm priority=normal,high"
        yield f"interference m={shape} units={machine.left(16)} beside=cu_in,cu_push blocks=8,16"
        yield f"interference m={shape} units={machine.left(32)} beside=cu_in,cu_push blocks=16,32"
        yield f"late_copy m={shape} beside=dma_in,dma_push size=4KiB,1MiB,16MiB"
        yield f"late_copy m={shape} beside=cu_in,cu_push blocks=8,32 size=4KiB,1MiB,16MiB priority=normal,high"
        yield f"late_copy m={shape} units={machine.left(16)} beside=cu_in blocks=8,16 size=1MiB,16MiB priority=normal,high"
    yield "interference work=local_copy m=0 n=0 k=0 beside=dma_in,dma_out,dma_push"
    yield "interference work=local_copy m=0 n=0 k=0 beside=cu_in,cu_out,cu_push blocks=8,16,32"


def four_gpus(machine):
    patterns = "one_with_all,all_with_one,ring,all_at_once,rotation"
    yield "# All GPUs from all peers at once by DMA: modes, so every sample and every copy's end."
    yield f"peer_copy gpus={machine.gpus} pattern=all_at_once transfer=pull,push n_samples=64 detail=1 size=1MiB,4MiB,16MiB,64MiB,256MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=all_at_once transfer=pull,push n_samples=64 detail=0 size=16MiB,64MiB"
    yield "# The same enqueued in another order."
    yield f"peer_copy gpus={machine.gpus} pattern=all_at_once enqueue=steps transfer=pull,push n_samples=64 detail=1 size=16MiB,64MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=rotation enqueue=lanes,steps transfer=pull,push n_samples=24 detail=1 size=16MiB,64MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=all_at_once,rotation row=4KiB pitch=16KiB transfer=pull n_samples=24 detail=1 size=16MiB,64MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=all_at_once n_samples=64 detail=1 chunks=4 size=4MiB,16MiB,64MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=all_at_once n_samples=64 detail=1 gemms=6 size=16MiB,64MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=one_with_all,all_with_one transfer=pull,push n_samples=64 detail=1 size=16MiB,64MiB"
    if machine.gpus > 3:
        yield f"peer_copy gpus={machine.gpus - 1} pattern=all_at_once n_samples=64 detail=1 size=64MiB"
    yield "# The others."
    yield f"peer_copy gpus={machine.gpus} agent=dma transfer=pull,push pattern={patterns} size={SIZES}"
    yield f"peer_copy gpus={machine.gpus} agent=cu blocks={BLOCKS} transfer=pull,push pattern={patterns} size={SIZES}"
    for row, pitch in ROWS[1:3]:
        yield f"peer_copy gpus={machine.gpus} pattern=all_at_once,rotation row={row} pitch={pitch} size=1MiB,4MiB,16MiB,64MiB"
    yield f"sustained m=8192 n=8192 k=8192 gpus={machine.gpus} duration_ms=1000"
    yield "# Beside GEMMs."
    for shape in BESIDE:
        yield f"interference m={shape} peers={machine.gpus - 1} beside=dma_in,dma_out,dma_push"
        yield f"interference m={shape} peers={machine.gpus - 1} beside=cu_in,cu_out,cu_push blocks=8,16,32"
        yield f"interference m={shape} peers={machine.gpus - 1} beside=dma_in,dma_push everywhere=1"
        yield f"interference m={shape} peers={machine.gpus - 1} beside=cu_in blocks=8,16 everywhere=1"
    for shape in BESIDE[1:3]:
        yield f"interference m={shape} peers={machine.gpus - 1} beside=dma_in size=1MiB,4MiB,16MiB"
        yield f"interference m={shape} peers={machine.gpus - 1} units={machine.left(32)} beside=cu_in,cu_push blocks=8"
    yield f"interference work=local_copy m=0 n=0 k=0 peers={machine.gpus - 1} beside=dma_in,dma_out,dma_push"
    yield f"interference work=local_copy m=0 n=0 k=0 peers={machine.gpus - 1} beside=cu_in,cu_out,cu_push blocks=8"


def beside(machine):
    yield "# Kernels that wait for units beside GEMMs."
    for shape in BESIDE:
        yield f"interference m={shape} beside=local_cu blocks=8,16,32"
        yield f"interference m={shape} peers={machine.peers()} beside=cu_in,cu_push blocks=8,16,32"
        yield f"interference m={shape} peers={machine.peers()} beside=cu_in blocks=16 everywhere=1"
        yield f"interference m={shape} peers={machine.gpus - 1} beside=cu_in blocks=8 everywhere=1"
    for shape in BESIDE[1:3]:
        yield f"interference m={shape} beside=cu_in blocks=16 size=4MiB,16MiB,256MiB"
        yield f"interference m={shape} beside=cu_in,cu_push blocks=16 first=both,copy,gemm priority=normal,high"


def of_shapes(machine, shapes):
    for shape in shapes:
        yield f"interference m={shape} beside=cu_in,cu_push blocks=8,16,32 size=16MiB,64MiB peers={machine.peers()}"
        yield f"interference m={shape} beside=local_cu blocks=8,16,32 size=16MiB,64MiB"


def more_shapes(machine):
    return of_shapes(machine, MORE)


def unseen(machine):
    return of_shapes(machine, UNSEEN)


def drawn(machine):
    yield "# Every kind of copy beside GEMMs of shapes that were drawn."
    yield from every_kind(machine, DRAWN)


def redrawn(machine):
    yield "# The same beside GEMMs of shapes that were drawn later."
    yield from every_kind(machine, REDRAWN)


def every_kind(machine, shapes):
    for shape in shapes:
        yield f"interference m={shape} beside=dma_in,dma_out,dma_push"
        yield f"interference m={shape} beside=dma_in,dma_push size=4MiB,16MiB"
        yield f"interference m={shape} beside=dma_in everywhere=1"
        yield f"interference m={shape} beside=cu_in,cu_out,cu_push,local_cu blocks=8,16,32"
        yield f"interference m={shape} beside=cu_in blocks=16 size=4MiB,16MiB,256MiB"
        yield f"interference m={shape} beside=cu_in blocks=16 everywhere=1"
        yield f"interference m={shape} units={machine.left(16)} beside=cu_in,cu_push blocks=8,16"
        yield f"interference m={shape} units={machine.left(32)} beside=cu_in,cu_push blocks=16,32"


def residency(machine):
    yield "# When does each compute unit come free, and what does a GEMM lose that some are kept from for a while?"
    for shape in BESIDE + MORE:
        gemm = f"residency m={shape} beside=hold"
        yield f"{gemm} blocks={machine.units} hold_us=4000 late_us=30 gemms=2"
        for share in (0.25, 0.5, 1):
            hold = 20 + int(share * GEMM_US[shape])
            yield f"{gemm} blocks=1,2,4,8,16,32 wait_us=20 hold_us={hold} gemms=3"
    yield "# Chains of copies beside chains of GEMMs: which units do their blocks get?"
    yield from chains("local_cu,cu_in", ((64, 190, 8), (16, 52, 16), (4, 18, 16)))


def residency_push(machine):
    yield "# Chains of pushes beside chains of GEMMs: which units do their blocks get?"
    yield from chains("cu_push", ((64, 190, 8), (16, 52, 16)))


def residency_drawn(machine):
    yield "# Chains of copies by few blocks beside chains of GEMMs of other shapes: how fast are they beside each?"
    for shape in DRAWN:
        m, n, k = (int(word.split("=")[-1]) for word in shape.split())
        gemms = min(140, 14 * 600 // (2 * m * n * k // 700_000_000) + 14)
        yield f"residency m={shape} beside=local_cu,cu_in,cu_push blocks=8 size=64MiB count=14 gemms={gemms} n_samples=3"


def chains(beside, sizes):
    for shape in BESIDE:
        for size, alone, count in sizes:
            gemms = min(140, int(count * (alone * 2 + GEMM_US[shape]) / GEMM_US[shape]) + 2)
            yield f"residency m={shape} beside={beside} blocks=8,16,32 size={size}MiB count={count} gemms={gemms} n_samples=3"


def at_once(machine):
    some = "n_samples=24"
    yield "# Chains of DMA copies on several streams of a GPU: does a stream go on before the end of a copy is seen, and what"
    yield "# do streams of one GPU wait for? With and without an event after each copy, enqueued in both orders."
    chained = f"peer_copy gpus={machine.gpus} pattern=all_at_once {some}"
    yield f"{chained} chunks=4 transfer=pull,push enqueue=lanes,steps detail=0,1 size=1MiB,4MiB,16MiB,64MiB"
    yield f"{chained} chunks=2,8 transfer=pull,push detail=0,1 size=4MiB,16MiB"
    yield f"{chained} chunks=4 gemms=6 enqueue=lanes,steps detail=1 size=16MiB"
    yield f"peer_copy gpus={machine.gpus - 1} pattern=all_at_once {some} chunks=4 enqueue=lanes,steps detail=0,1 size=16MiB,64MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=one_with_all,all_with_one {some} chunks=4 transfer=pull,push detail=0,1 size=1MiB,16MiB"
    yield f"peer_copy gpus={machine.gpus} pattern=rotation {some} chunks=4 transfer=pull,push enqueue=lanes,steps detail=0,1 size=4MiB,16MiB"
    yield f"peer_copy gpus=2 pattern=pair,both_ways {some} chunks=4 transfer=pull,push detail=1 size=64KiB,1MiB,4MiB,16MiB"
    yield "# Copies by kernels: every copy's end."
    kernels = f"peer_copy agent=cu {some} detail=1 transfer=pull,push"
    yield f"{kernels} gpus={machine.gpus} pattern=all_at_once blocks={BLOCKS} size=1MiB,4MiB,16MiB,64MiB,256MiB"
    yield f"{kernels} gpus={machine.gpus} pattern=all_at_once blocks=1,2,64 size=64MiB"
    yield f"{kernels} gpus={machine.gpus - 1} pattern=all_at_once blocks={BLOCKS} size=4MiB,16MiB,64MiB"
    yield f"{kernels} gpus={machine.gpus} pattern=one_with_all,all_with_one blocks=4,16 size=16MiB,64MiB"


def parts_1(machine):
    yield "# Long GEMMs on every GPU: how much do the GPUs differ?"
    gpus = ",".join(str(gpu) for gpu in range(machine.gpus))
    for shape in [shape for shape in BESIDE + MORE if GEMM_US[shape] >= 200]:
        yield f"gemm m={shape} gpu={gpus}"


def energy(machine):
    yield "# Joules of nothing, of GEMMs from few to many FLOPs a byte, of copies; in bursts below the power limit."
    yield "energy work=idle"
    yield "energy work=gemm m=8192 n=8192 k=8192 dtype=bf16,fp16,fp8"
    yield "energy work=gemm m=4096 n=2560 k=8192"
    yield "energy work=gemm m=8192 n=8192 k=1024,256"
    yield "energy work=gemm m=8192 n=8192 k=8192 pause_ms=5,20"
    yield "energy work=gemm m=128,512,2048 n=8192 k=8192 pause_ms=20"
    yield "energy work=local agent=dma size=1GiB"
    yield f"energy work=local agent=cu blocks={machine.blocks(32)} size=1GiB pause_ms=0,20"
    yield "energy work=peer gpus=2 agent=dma transfer=pull,push size=1GiB"
    yield "energy work=peer gpus=2 agent=cu transfer=pull,push blocks=8,32 size=1GiB"
