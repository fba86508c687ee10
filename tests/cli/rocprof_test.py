"""What rocprofv3 writes: CSV of every numbering of agents, rocpd of both versions of its tables."""
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

    def test_files_that_are_not_read_say_what_to_do(self):
        for name, hint in (("1234_results.pftrace", "--output-format csv or json"), ("run.nsys-rep", "nsys export --type sqlite"), ("rank.0.et", "sim --workload")):
            (self.folder / name).write_bytes(b"\n\x1f\x00")
            self.assert_refused(["import", name, "--out", "o.json"], f"{name}: is ", hint)
