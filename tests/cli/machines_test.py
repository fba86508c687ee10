"""Topologies from what NCCL, nvidia-smi and rocm-smi say of a machine; files of other programs are named."""
import json

from sim_case import ROOT, SimTestCase
from trace_case import TraceTestCase


class MachinesOfOthers(TraceTestCase):
    def topology(self, *args):
        self.output("new", "topology", *args, "--out", "out")
        made = sorted((self.folder / "out").glob("*.json"))
        self.assertEqual(len(made), 1)
        topology = json.loads(made[0].read_text(encoding="utf-8"))
        done = self.sim("--topology", str(made[0]), "--schedule", "shard_p2p", "--gemm", "4096x1024x2048", "--format", "json")
        self.assertEqual(done.returncode, 0, done.stderr)
        made[0].unlink()
        return topology

    def xml(self, vendor, device, links, kind="xgmi"):
        """`links`: by GPU, {target: count}; targets that are no GPU are switches."""
        gpus = "".join(f'<pci busid="0000:{gpu:02x}:00.0" class="0x030200" vendor="{vendor}" device="{device}" link_speed="32.0 GT/s PCIe" link_width="16">'
                       f'<gpu dev="{gpu}" sm="90" rank="{gpu}" gdr="1">'
                       + "".join(f'<{kind} target="0000:{to:02x}:00.0" count="{count}" tclass="0x068000"/>' for to, count in of_gpu.items())
                       + '</gpu></pci><pci busid="0000:f0:00.0" class="0x020700"><nic><net name="mlx5_0" dev="0" speed="400000"/></nic></pci>'
                       for gpu, of_gpu in enumerate(links))
        return self.file("nccl.xml", f'<system version="2"><cpu numaid="0" arch="x86_64">{gpus}</cpu></system>')

    @staticmethod
    def shipped(name):
        return json.loads((ROOT / "configs" / "topologies" / f"{name}.json").read_text(encoding="utf-8"))

    def rates(self, topology):
        return [(group["type"], group.get("pairs"), round(group["bandwidth_GBps"]["value"], 6)) for group in topology["fabric"]]

    def test_the_xml_of_rccl_is_the_shipped_topology(self):
        mesh = [{other: 1 for other in range(8) if other != gpu} for gpu in range(8)]
        made = self.topology("--from", self.xml("0x1002", "0x74a1", mesh))
        self.assertEqual((made["device"], made["gpus_per_node"], self.rates(made)), ("mi300x.json", 8, [("full_mesh", None, 46.5)]))
        links = [{} for _ in range(8)]
        for group, count in zip(self.shipped("mi250x_8")["fabric"], (4, 2, 1)):
            for one, other in group["pairs"]:
                links[one][other] = links[other][one] = count
        made = self.topology("--from", self.xml("0x1002", "0x7408", links))
        self.assertEqual(sorted(self.rates(made), key=str), sorted(self.rates(self.shipped("mi250x_8")), key=str))

    def test_the_xml_of_nccl_has_switches(self):
        made = self.topology("--from", self.xml("0x10de", "0x2330", [{0xA0: 4, 0xA1: 5, 0xA2: 5, 0xA3: 4}] * 8, "nvlink"), "my_h100")
        self.assertEqual((made["name"], made["device"], self.rates(made)), ("my_h100", "h100.json", [("switch", None, 399.3)]))
        uneven = [{0xA0: 18}] * 7 + [{0xA0: 17}]
        self.assert_refused(["new", "topology", "--from", self.xml("0x10de", "0x2330", uneven, "nvlink"), "--out", "out"], "GPUs have 17 to 18 links to switches")
        self.assert_refused(["new", "topology", "--from", self.xml("0x10de", "0x20b0", [{0xA0: 12}] * 8, "nvlink"), "--out", "out"], "--device is missing", "0x20b0")

    def matrix(self, gpus, cell, more=""):
        head = "\t" + "\t".join(f"\x1b[4mGPU{i}" for i in range(gpus)) + "\tNIC0\tCPU Affinity\tNUMA Affinity\x1b[0m\n"
        rows = "".join(f"GPU{i}\t" + "\t".join(" X " if i == j else cell(i, j) for j in range(gpus)) + "\tPIX\t0-47\t0\n" for i in range(gpus))
        return head + rows + "NIC0\t" + "\t".join(["PIX"] * gpus) + "\t X\n\nLegend:\n  NV#  = Connection traversing a bonded set of # NVLinks\n" + more

    def test_what_nvidia_smi_prints(self):
        self.file("topo.txt", self.matrix(8, lambda i, j: "NV18"))
        made = self.topology("--from", "topo.txt", "--device", "h200")
        self.assertEqual(self.rates(made), [("switch", None, 397.5)])
        # Four GPUs with six links to each other have 18 each: no switch.
        self.file("topo.txt", self.matrix(4, lambda i, j: "NV6"))
        self.assertEqual(self.rates(self.topology("--from", "topo.txt", "--device", "h100")), [("full_mesh", None, round(6 / 18 * 399.3, 6))])
        self.file("topo.txt", self.matrix(4, lambda i, j: "NV4" if i // 2 == j // 2 else "SYS"))
        self.assertEqual(self.rates(self.topology("--from", "topo.txt", "--device", "h100")), [("links", [[0, 1], [2, 3]], round(4 / 18 * 399.3, 6)), ("switch", None, 24.0)])
        self.assert_refused(["new", "topology", "--from", "topo.txt", "--out", "out"], "--device is missing: topo.txt names no GPU")
        self.assert_refused(["new", "topology", "--from", self.file("bad.txt", self.matrix(2, lambda i, j: "NVX")), "--device", "h100", "--out", "out"],
                            "between GPU0 and GPU1 stands 'NVX'")

    def test_what_rocm_smi_prints(self):
        def rows(cell, gpus):
            lines = ["       " + "".join(f"GPU{i}         " for i in range(gpus))]
            return "\n".join(lines + [f"GPU{i}   " + "".join(("0" if i == j else cell).ljust(13) for j in range(gpus)) for i in range(gpus)])
        for kind, hops, device, gpus, expected in (("XGMI", "1", "mi300x", 8, [("full_mesh", None, 46.5)]), ("PCIE", "3", "mi100", 4, [("switch", None, 24.0)])):
            text = "\n\n".join(["=== ROCm System Management Interface ===", "=== Weight between two GPUs ===\n" + rows("15", gpus),
                                "=== Hops between two GPUs ===\n" + rows(hops, gpus), "=== Link Type between two GPUs ===\n" + rows(kind, gpus),
                                "=== Numa Nodes ===\nGPU[0]  : (Topology) Numa Node: 0"])
            self.file("topo.txt", text)
            self.assertEqual(self.rates(self.topology("--from", "topo.txt", "--device", device)), expected)

    def test_other_programs_files_are_named(self):
        files = {
            "nccl.xml": ('<system version="2"></system>', "NCCL and RCCL", "sim new topology --from"),
            "msccl.xml": ('<algo name="test" nchannels="1"></algo>', "MSCCL (XML)", "overlap.read_msccl"),
            "simai.txt": ("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1\n1\nembedding_layer -1 556000 ALLREDUCE 536870912", "SimAI", "sim model NAME"),
            "astra.yml": ("topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 400.0 ]  # GB/s\nlatency: [ 936.25 ]  # ns\n", "ASTRA-sim", "--link-GBps"),
            "mscclpp.json": ({"name": "allreduce", "collective": "allreduce", "protocol": "LL", "inplace": True, "gpus": []}, "MSCCL++", "overlap.read_mscclpp"),
            "micro.txt": ("MICRO\n1\nallreduce -1 1 ALLREDUCE 1048576 1 NONE 0 1 NONE 0 1\n", "SimAI", "sim model NAME"),
            "ns3.txt": ("9 1 8\n8\n8 0 400Gbps 0.0005ms 0\n8 1 400Gbps 0.0005ms 0\n", "a network of ASTRA-sim", "sim new device"),
            "network.json": ({"topology": ["Ring"], "npus_count": [4], "bandwidth": [50.0], "latency": [500.0]}, "a network of ASTRA-sim", "--link-GBps"),
            "dims.json": ({"logical-dims": ["8", "2"]}, "a network of ASTRA-sim", "--link-GBps"),
            "system.json": ({"scheduling-policy": "LIFO", "all-reduce-implementation": ["ring"]}, "a system of ASTRA-sim", "--set algorithm=ring"),
            "memory.json": ({"memory-type": "NO_MEMORY_EXPANSION"}, "a system of ASTRA-sim", "sim new device"),
            "trace.pb": ("\n\u0010R\u000e\n\u0004\b\u0001", "a Perfetto trace", "torch.profiler"),
            "topo.txt": (self.matrix(2, lambda i, j: "NV18"), "nvidia-smi topo -m", "sim new topology --from")}
        for name, (content, *expected) in files.items():
            self.file(name, content)
            self.assert_refused(["--topology", "h200_8", "--schedule", "serial", "--workload", "./" + name], name, *expected)
            self.assert_refused(["--topology", "./" + name, "--schedule", "serial"], name, *expected)
            self.assert_refused(["import", name, "--out", "case.json"], name, *expected)
            self.assert_refused(["advise", "--trace", name], name, *expected)
            if not {"sim new topology --from"} & set(expected):  # which reads them
                self.assert_refused(["new", "topology", "--from", name, "--out", "out"], name, *expected)


class Clusters(SimTestCase):
    def test_every_command_takes_nodes(self):
        cluster = ["--topology", "h100_rail", "--nodes", "2"]
        pair = ["--gemm", "4096x1024x2048"]
        for args in ([*cluster, "--schedule", "serial", *pair], ["sensitivity", *cluster, "--schedule", "serial", *pair], ["advise", *cluster, *pair],
                     ["search", *cluster, *pair, "--budget", "0"],
                     ["model", "llama3_70b", *cluster, "--tp", "8", "--tokens", "4096"]):
            with self.subTest(args=args):
                self.assertIn("h100_16_rail", self.output(*args, "--format", "json"))
        self.file("sweep.json", json.dumps({"base": {"topology": "h100_16_rail", "schedule": "serial", "workload": "ficco_g1"},
                                            "axes": {"topology": ["h100_16_rail", "b300_rail"]}}))
        self.output("sweep", "sweep.json", "--out", "out")
        points = (self.folder / "out" / "points.csv").read_text(encoding="utf-8")
        self.assertEqual((points.count("h100_16_rail"), points.count("b300_rail")), (1, 1))

    def test_numbers_of_nodes_that_cannot_be(self):
        run = ["--schedule", "serial"]
        self.assert_refused(["--topology", "h100_rail", "--nodes", "1", *run], "--nodes is 1, expected 2 to 16384 for h100_rail")
        self.assert_refused(["--topology", "gb200_rail", "--nodes", "1821", *run], "--nodes is 1821, expected 2 to 1820 for gb200_rail")
        self.assert_refused(["--topology", "h100_8", "--nodes", "2", *run], "--nodes goes with b200_rail, ", "not with 'h100_8'")
        self.assert_refused(["--topology", "h100_100_rail", *run], "h100_100_rail: has 100 GPUs, expected a multiple of the 8 of a node, 16 to 131072")
        self.assert_refused(["--topology", "h10_64_rail", *run], "did you mean 'h100_rail'?")
