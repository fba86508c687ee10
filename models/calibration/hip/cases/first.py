"""The first cases of a measurement: a spread over all kinds, enough for a first calibration. Lists as in lists.py."""
from lists import BESIDE, FAMILIES

SOME = "64KiB,1MiB,16MiB,256MiB"
TWO = [BESIDE[1], BESIDE[2]]


def gemm(machine):
    for _, shapes in FAMILIES:
        for n, k in shapes:
            yield f"gemm n={n} k={k} m=256,1024,1536,4096,16384"
            yield f"gemm n={n} k={k // 2} m=4096 beta=1"
    for n, k in [(2560, 8192), (7168, 8192), (4096, 7168), (5120, 5120)]:
        yield f"gemm n={n} k={k} m=1024,4096,16384 dtype=fp16,fp8"


def local(machine):
    yield "latency what=events,kernels,kernels_marked,stream_hop,host_launch"
    yield "latency what=streams_apart,mark_apart n_samples=99"
    yield "first_served m=4096 n=4096 k=4096 beside=local_cu blocks=8,32 at=start,middle"
    yield f"local_copy agent=dma size={SOME}"
    yield f"local_copy agent=cu blocks={machine.blocks(8, 32)} size={SOME}"
    yield "local_copy agent=dma row=4KiB pitch=16KiB operation=pack,scatter size=1MiB,64MiB"
    yield f"local_copy agent=cu blocks={machine.blocks(16)} row=4KiB pitch=16KiB operation=pack,scatter size=1MiB,64MiB"
    yield f"memory operation=read,write,triad blocks={machine.blocks(8, 32, 64)} size=1GiB"
    yield f"memory operation=reduce parts=2,4 blocks={machine.blocks(32)} size=16MiB,256MiB"
    yield "sustained m=8192 n=8192 k=8192 duration_ms=1000"
    for shape in TWO:
        yield f"interference m={shape} beside=local_dma"
        yield f"late_copy m={shape} beside=local_dma size=16MiB"


def two_gpus(machine):
    yield "latency what=gpu_hop,dma,dma_kernel_hop,kernel_dma_stream,flag_hop,host_dma"
    yield "peer_copy agent=dma transfer=pull,push pattern=pair,both_ways size=4KiB,16KiB,64KiB,256KiB,1MiB,4MiB,16MiB,256MiB"
    yield f"peer_copy agent=cu blocks=8,32 transfer=pull,push pattern=pair,both_ways size={SOME}"
    yield "peer_copy agent=dma row=4KiB pitch=16KiB transfer=pull,push size=1MiB,64MiB"
    yield "peer_copy agent=dma transfer=pull,push pattern=pair chunks=4 size=1MiB,16MiB"
    for shape in TWO:
        yield f"interference m={shape} beside=dma_in,dma_out,dma_push"
        yield f"interference m={shape} beside=cu_out blocks=16"
        yield f"interference m={shape} units={machine.left(16)} beside=cu_in,cu_push blocks=16"


def four_gpus(machine):
    patterns = "one_with_all,all_with_one,ring,all_at_once,rotation"
    yield f"peer_copy gpus={machine.gpus} agent=dma transfer=pull,push pattern={patterns} size=1MiB,64MiB"
    yield f"peer_copy gpus={machine.gpus} agent=cu blocks=16 transfer=pull,push pattern={patterns} size=1MiB,64MiB"
    for shape in TWO:
        yield f"interference m={shape} peers={machine.gpus - 1} beside=dma_in,dma_push"


def beside(machine):
    for shape in TWO:
        yield f"interference m={shape} beside=local_cu,cu_in,cu_push blocks=16"


def energy(machine):
    yield "energy work=idle"
    yield "energy work=gemm m=8192 n=8192 k=8192"
    yield "energy work=gemm m=8192 n=8192 k=1024"
    yield f"energy work=local agent=cu blocks={machine.units} size=1GiB"
