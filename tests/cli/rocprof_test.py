"""What rocprofv3 writes: CSV of every numbering of agents, rocpd of both versions of its tables, Perfetto traces."""
import gzip
import json

from perfetto_case import Writer, field, packet, rocprof_trace
from trace_case import GENERIC, NCCL, TENSILE, TraceTestCase


class RocprofTraces(TraceTestCase):
    def rows(self, kernels, agent="Agent {}", gpus=8, first=4):
        """Each GPU runs these (name, start, end in us) kernels."""
        return [{"Kind": "KERNEL_DISPATCH", "Agent_Id": agent.format(gpu + first), "Queue_Id": 1, "Stream_Id": 1 if "nccl" in name else 0,
                 "Kernel_Name": name, "Start_Timestamp": 1000 * start, "End_Timestamp": 1000 * end}
                for gpu in range(gpus) for name, start, end in kernels]

    PAIRS = [kernel for run in range(3) for kernel in ((GENERIC, 2000 * run, 2000 * run + 400), (TENSILE, 2000 * run + 410, 2000 * run + 1310))]
    FLAGS = ("--gemm", "16384x1792x4096", "--topology", "mi300x_8")

    def test_agents_of_every_numbering_are_gpus(self):
        for agent, first in (("Agent {}", 4), ("{}", 0), ("GPU {}", 0)):
            self.csv("t.csv", self.rows(self.PAIRS, agent, first=first))
            self.assertIn("48 spans of 8 GPUs", self.imported("t.csv")[0])

    def test_one_name_for_all_collectives_is_told_by_calls_or_by_a_flag(self):
        self.csv("kernel_trace.csv", self.rows(self.PAIRS))
        text, _ = self.imported("kernel_trace.csv", *self.FLAGS)
        self.assertIn(f"recognised  nothing: the collective of kernel {GENERIC} is not known", text)
        self.assertIn("--collective NAME", text)
        self.assertIn("rccl_api_trace.csv", text)
        text, case = self.imported("kernel_trace.csv", "--collective", "all_gather", *self.FLAGS)
        self.assertIn("24 kernels taken as all_gather (--collective)", text)
        self.assertEqual(case["scenario"]["workload"]["collective"], "all_gather")
        # One process asks for eight GPUs, in a group.
        calls = [{"Domain": "RCCL_API", "Function": function, "Process_Id": 1, "Thread_Id": 1, "Correlation_Id": 1,
                  "Start_Timestamp": 1000 * (2000 * run) - 50 + place, "End_Timestamp": 1000 * (2000 * run) - 40}
                 for run in range(3) for place, function in enumerate(["ncclGroupStart"] + ["ncclAllGather"] * 8 + ["ncclGroupEnd"])]
        for call in calls:
            call["Start_Timestamp"] += 100
        self.csv("rccl_api_trace.csv", calls)
        text, case = self.imported("kernel_trace.csv", "rccl_api_trace.csv", *self.FLAGS)
        self.assertIn("24 kernels named by the library's 24 calls", text)
        self.assertEqual(case["scenario"]["workload"]["collective"], "all_gather")

    def test_folders_of_two_machines_are_two_machines(self):
        for node, later in (("node0", 0), ("node1", 7_000_000)):  # clocks that begin with their machines
            rows = self.rows([(name, later + start, later + end) for name, start, end in self.PAIRS], gpus=1)
            self.csv(f"{node}/1_kernel_trace.csv", rows)
        text, case = self.imported("node0", "node1", "--collective", "all_gather")
        self.assertIn("2 GPUs that have 1 number in the files, told apart by machine", text)
        self.assertIn("its clock is 7000000 us later", text)
        self.assertAlmostEqual(case["makespan_us"], 1310.0, 3)

    ROCPD = """
        CREATE TABLE rocpd_string{u}(id INTEGER PRIMARY KEY, guid TEXT, string TEXT);
        CREATE TABLE rocpd_info_node{u}(id INTEGER PRIMARY KEY, guid TEXT, hash INTEGER, machine_id TEXT, hostname TEXT);
        CREATE TABLE rocpd_info_agent{u}(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, type TEXT, absolute_index INTEGER,
                                         logical_index INTEGER, type_index INTEGER, name TEXT, product_name TEXT);
        CREATE TABLE rocpd_info_kernel_symbol{u}(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, kernel_name TEXT, display_name TEXT);
        INSERT INTO rocpd_string{u} VALUES (1, 'g', 'MEMORY_COPY_DEVICE_TO_DEVICE'), (2, 'g', 'ncclAllGather');
        INSERT INTO rocpd_info_node{u} VALUES (1, 'g', 7, 'm', 'node0');
        INSERT INTO rocpd_info_agent{u} VALUES (1, 'g', 1, 1, 'CPU', 0, 0, 0, 'EPYC', ''), (2, 'g', 1, 1, 'GPU', 4, 0, 0, 'gfx942', 'AMD Instinct MI300X'),
                                               (3, 'g', 1, 1, 'GPU', 5, 1, 1, 'gfx942', 'AMD Instinct MI300X');
        INSERT INTO rocpd_info_kernel_symbol{u} VALUES (7, 'g', 1, 1, '_Z', '""" + TENSILE + """'), (8, 'g', 1, 1, '_Z', '""" + GENERIC + """');
        """
    # Since ROCm 7.0: a dispatch has its agent and its times.
    WIDE = """
        CREATE TABLE rocpd_kernel_dispatch{u}(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, kernel_id INTEGER,
                                              dispatch_id INTEGER, queue_id INTEGER, stream_id INTEGER, start INTEGER, end INTEGER, event_id INTEGER);
        CREATE TABLE rocpd_memory_copy{u}(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, name_id INTEGER,
                                          dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER, queue_id INTEGER, stream_id INTEGER);
        CREATE TABLE rocpd_region{u}(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, start INTEGER, end INTEGER, name_id INTEGER, event_id INTEGER);
        INSERT INTO rocpd_kernel_dispatch{u} VALUES (1, 'g', 1, 1, 1, 2, 8, 1, 1, 1, 1000, 401000, 1), (2, 'g', 1, 1, 1, 2, 7, 2, 1, 0, 410000, 1310000, 2),
                                                    (3, 'g', 1, 1, 1, 3, 8, 1, 1, 1, 1000, 401000, 3), (4, 'g', 1, 1, 1, 3, 7, 2, 1, 0, 410000, 1310000, 4);
        INSERT INTO rocpd_memory_copy{u} VALUES (1, 'g', 1, 1, 1, 1310000, 1320000, 1, 3, 2, 4096, 1, 0), (2, 'g', 1, 1, 1, 1310000, 1311000, 1, 2, 1, 64, 1, 0);
        INSERT INTO rocpd_region{u} VALUES (1, 'g', 1, 1, 1, 100, 200, 2, 1), (2, 'g', 1, 1, 1, 110, 210, 2, 2);
        """
    # Version 3 of the tables: tracks have agents, and timestamps times.
    TRACKS = """
        CREATE TABLE rocpd_track{u}(id INTEGER PRIMARY KEY, guid TEXT, nid INTEGER, pid INTEGER, tid INTEGER, agent_id INTEGER, queue_id INTEGER, stream_id INTEGER);
        CREATE TABLE rocpd_timestamp{u}(id INTEGER PRIMARY KEY, guid TEXT, value INTEGER);
        CREATE TABLE rocpd_kernel_dispatch{u}(id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, kernel_id INTEGER, dispatch_id INTEGER, start_id INTEGER, end_id INTEGER);
        CREATE TABLE rocpd_memory_copy{u}(id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, start_id INTEGER, end_id INTEGER, name_id INTEGER,
                                          dst_agent_id INTEGER, src_agent_id INTEGER, size INTEGER);
        CREATE TABLE rocpd_region{u}(id INTEGER PRIMARY KEY, guid TEXT, track_id INTEGER, name_id INTEGER, start_id INTEGER, end_id INTEGER);
        INSERT INTO rocpd_track{u} VALUES (1, 'g', 1, 1, 1, 2, 1, 1), (2, 'g', 1, 1, 1, 2, 1, 0), (3, 'g', 1, 1, 1, 3, 1, 1), (4, 'g', 1, 1, 1, 3, 1, 0);
        INSERT INTO rocpd_timestamp{u} VALUES (1, 'g', 1000), (2, 'g', 401000), (3, 'g', 410000), (4, 'g', 1310000), (5, 'g', 1320000), (6, 'g', 1311000), (7, 'g', 100);
        INSERT INTO rocpd_kernel_dispatch{u} VALUES (1, 'g', 1, 8, 1, 1, 2), (2, 'g', 2, 7, 2, 3, 4), (3, 'g', 3, 8, 1, 1, 2), (4, 'g', 4, 7, 2, 3, 4);
        INSERT INTO rocpd_memory_copy{u} VALUES (1, 'g', 4, 4, 5, 1, 3, 2, 4096), (2, 'g', 2, 4, 6, 1, 2, 1, 64);
        INSERT INTO rocpd_region{u} VALUES (1, 'g', 1, 2, 7, 1), (2, 'g', 3, 2, 7, 1);
        """

    def test_rocpd_of_both_versions_of_its_tables(self):
        for name, tables in (("wide.db", self.WIDE), ("tracks.db", self.TRACKS)):
            self.database(name, (self.ROCPD + tables).replace("{u}", "_00006409_00d1"))
            text, case = self.imported(name, "--iteration", "all")
            self.assertIn("6 spans of 2 GPUs over 1319.0 us, from rocprofv3", text)
            self.assertIn("2 kernels named by the library's 2 calls", text)
            kinds = sorted((span["gpu"], span["start_us"], span["kind"]) for span in case["spans"])
            self.assertEqual(kinds, [(0, 0.0, "collective"), (0, 409.0, "gemm"), (0, 1309.0, "memory_bound"), (1, 0.0, "collective"), (1, 409.0, "gemm"),
                                     (1, 1309.0, "copy")])

    def test_a_rocpd_database_without_kernels_says_how_to_record_them(self):
        self.database("empty.db", (self.ROCPD + self.WIDE).replace("{u}", "_1") + "DELETE FROM rocpd_kernel_dispatch_1; DELETE FROM rocpd_memory_copy_1;")
        self.assert_refused(["import", "empty.db", "--out", "o.json"], "empty.db: is a rocpd database without a kernel or a copy", "rocprofv3 --kernel-trace")

    # Both GPUs gather, multiply twice, and the first one copies to the second one and to the host.
    KERNELS = [(gpu, stream, name, start, end) for gpu in (4, 5) for stream, name, start, end in (
        (1, GENERIC, 1_000, 401_000), (0, TENSILE, 410_000, 1_310_000), (0, TENSILE, 1_310_500, 2_210_500))]
    COPIES = [(4, 5, "MEMORY_COPY_DEVICE_TO_DEVICE", 4096, 2_220_000, 2_230_000), (4, 0, "MEMORY_COPY_DEVICE_TO_HOST", 64, 2_220_000, 2_221_000)]
    CALLS = [("ncclAllGather", 100, 200), ("ncclAllGather", 210, 300)]

    def csv_of_the_same(self, agent):
        def named(one):
            return agent.format(one).replace("-", " ") if agent else one
        kernels = [{"Kind": "KERNEL_DISPATCH", "Agent_Id": named(gpu), "Queue_Id": 0, **({"Stream_Id": stream} if agent else {}), "Kernel_Name": name,
                    "Start_Timestamp": start, "End_Timestamp": end} for gpu, stream, name, start, end in self.KERNELS]
        copies = [{"Kind": "MEMORY_COPY", "Direction": direction, "Source_Agent_Id": named(source), "Destination_Agent_Id": named(to),
                   "Start_Timestamp": start, "End_Timestamp": end} for source, to, direction, _, start, end in self.COPIES]
        calls = [{"Domain": "RCCL_API", "Function": name, "Start_Timestamp": start, "End_Timestamp": end} for name, start, end in self.CALLS]
        return [self.csv("kernel_trace.csv", kernels), self.csv("memory_copy_trace.csv", copies), self.csv("rccl_api_trace.csv", calls)]

    def test_a_perfetto_trace_is_what_the_csv_files_are(self):
        for agent in ("Agent-{}", "GPU-{}", ""):  # older versions write numbers
            trace = rocprof_trace(self.KERNELS, self.COPIES, self.CALLS, agent)
            (self.folder / "1_results.pftrace").write_bytes(trace)
            (self.folder / "zipped.pftrace.gz").write_bytes(gzip.compress(trace))
            found = []
            for files in (self.csv_of_the_same(agent), ["1_results.pftrace"], ["zipped.pftrace.gz"]):
                text, case = self.imported(*files, "--iteration", "all", "--out-workload", "list.json")
                self.assertIn("8 spans of 2 GPUs over 2229.0 us, from rocprofv3", text)
                self.assertIn("2 kernels named by the library's 2 calls", text)
                operators = json.loads((self.folder / "list.json").read_text(encoding="utf-8"))["operators"]
                found.append((sorted(case["spans"], key=lambda span: (span["gpu"], span["start_us"])), operators))
                self.assertEqual([one["read_bytes"] for one in operators], [0, 0, 0, 0 if ".csv" in files[0] else 4096])
                for one in operators:  # a CSV file doesn't have a copy's size
                    one.update(read_bytes=0, write_bytes=0)
            self.assertEqual(len(found[0][0]), 8)
            self.assertEqual({span["kind"] for span in found[0][0]}, {"gemm", "collective", "copy", "memory_bound"})
            self.assertEqual(found[1], found[0])
            self.assertEqual(found[2], found[0])

    def test_a_cut_off_or_damaged_perfetto_trace_is_read_or_refused_in_one_line(self):
        trace = rocprof_trace(self.KERNELS, self.COPIES, self.CALLS)
        ended = {0: 0, 2: 0}
        for size in sorted({*range(1, len(trace), 7), len(trace) - 1}):
            for rest in (b"", b"\xff" + trace[size + 1:]):
                (self.folder / "cut.pftrace").write_bytes(trace[:size] + rest)
                done = self.sim("import", "cut.pftrace", "--iteration", "all", "--out", "o.json")
                self.assertRegex(done.stderr, r"\Asim: cut\.pftrace: [^\n]+\n\Z" if done.returncode else r"\A\Z", size)
                ended[done.returncode] += 1
        self.assertGreater(ended[0], 10)  # a text that is no UTF-8 is read
        self.assertGreater(ended[2], 300)

    def test_a_perfetto_trace_says_where_it_is_wrong(self):
        writer = Writer(2)
        slice_ = ("kernel_dispatch", TENSILE, 1, 1000, 2000, {"agent": "Agent-4", "corr_id": 1, "queue": 0})
        lost = writer.cleared() + writer.slice(*slice_)
        for name, content, problem in (
                ("type", lost + b"\x08\x01", f"packet at byte {len(lost)}: is none of a Perfetto trace, or is cut off"),
                ("size", lost + b"\x0a\x05abc", f"packet at byte {len(lost)}: has 5 bytes, but the file only 3 more"),
                ("damaged", lost + b"\x0a\x03abc", f"packet at byte {len(lost)}: is damaged"),
                ("dropped", lost + packet(field(10, 2), field(42, 1)) + writer.slice(*slice_), "needs names of packets that were dropped"),
                ("name", lost + packet(field(10, 9), field(11, field(9, 1) + field(3, 77))), "has no name for number 77"),
                ("agent", lost + writer.slice(*slice_[:5], {"agent": "Agent-x", "queue": 0}), "agent is 'Agent-x', expected an agent's number"),
                ("queue", lost + writer.slice(*slice_[:5], {"agent": "Agent-4"}), "has no annotation 'queue'"),
                ("time", lost + writer.slice("kernel_dispatch", TENSILE, 1, 2 ** 63, 2 ** 63 + 1, {"agent": "Agent-4", "queue": 0}),
                 "begin_ns is no whole number of 63 bits"),
                ("none", rocprof_trace(), "is a Perfetto trace without a kernel or a copy of rocprofv3: record with rocprofv3 --kernel-trace")):
            (self.folder / f"{name}.pftrace").write_bytes(content)
            self.assert_refused(["import", f"{name}.pftrace", "--out", "o.json"], f"{name}.pftrace: ", problem)

    def test_files_that_are_not_read_say_what_to_do(self):
        for name, hint in (("1234_results.pftrace", "none of rocprofv3"), ("a.pftrace.gz", "none of rocprofv3"), ("b.perfetto-trace", "torch.profiler"),
                           ("run.nsys-rep", "nsys export --type sqlite"), ("rank.0.et", "sim --workload")):
            (self.folder / name).write_bytes(b"\n\x10R\x0e\n\x04\x08\x01")
            self.assert_refused(["import", name, "--out", "o.json"], f"{name}: is ", hint)
