"""sim sweep: what it refuses, and how."""
from sim_case import SimTestCase
from sweep_test import BASE, Sweeping


class SweepMistakes(Sweeping, SimTestCase):
    def test_wrong_types(self):
        """Each was an internal error or a crash."""
        chunks = {"axes": {"params.chunks": [2]}}
        gemm = {"axes": {"workload.gemm.m": [512]}}
        self.refused({**chunks, "base": {**BASE, "params": 5}}, "/base: /params: is 5, expected an object")
        for value in ([1, 2], 5, {"a": 1}):
            self.refused({"axes": {"params.agent": [value], "params.copy_cus": [2]}}, "/params/agent: is ", "expected text")
        self.refused({"axes": {"schedule": [5], "params.chunks": [2]}}, "/schedule: is 5")
        self.refused({"axes": {"topology": [["h200_4"]]}, "where": ["gpus > 1"]}, "/topology: is [")
        self.refused({**gemm, "base": {**BASE, "workload": {"gemm": 7}}}, "/workload/gemm: is 7, expected an object")
        self.refused({**gemm, "base": {**BASE, "workload": {"gemm": 7}}, "where": ["gemm.m > 1"]}, "/workload/gemm: is 7")
        self.refused({"axes": {"workload.gemm.m": ["x"]}, "where": ["gemm.m > 1"]}, "/workload/gemm/m: is \"x\"")
        self.refused({"axes": {"what_if.device.dma.engines": [4]}, "base": {**BASE, "what_if": 5}}, "/what_if: is 5")
        digits = "workload.operators." + 40 * "9" + ".bytes"
        self.refused({"axes": {digits: [64]}, "base": {**BASE, "workload": {"operators": [{"name": "a"}]}}},
                     "/workload/operators", "there are 1")
        self.refused({"axes": {"workload.operators." + 50_000 * "9": [1]}}, "is no field of a run config")
        self.refused({"axes": {"workload.gemm.m": {"from": 1e19, "to": 2e19, "by": 1e19}}}, "/workload/gemm/m: is 1e+19")
        big = 10**19
        self.refused({"axes": {"workload.gemm.m": {"from": big, "to": big, "by": big}}}, "/workload/gemm/m: is 1")

    def test_where_has_types(self):
        axes = {"axes": {"params.chunks": [2]}}
        for text in ('"a" % 2 == 0', '2 % "a" == 0', "schedule % 2 == 0"):
            self.refused({**axes, "where": [text]}, "/where/0", "needs a number on both sides")
        for text in ("", "(", "chunks[", "chunks[9]", "{1", "1 ? 2", "()", "a(", '"'):
            self.file("sweep.json", {"schema": 1, "name": "test", "base": BASE, **axes, "where": [text]})
            self.assert_refused(["sweep", "sweep.json", "--out", "out"], "/where/0")
            self.assertNotIn("Assertion", self.sim("sweep", "sweep.json", "--out", "out").stderr)
        self.refused({**axes, "where": ["1 + " * 10_000 + "1"]}, "/where/0", "characters")

    def refused(self, content, *expected):
        self.file("sweep.json", {"schema": 1, "name": "test", "base": BASE, **content})
        self.assert_refused(["sweep", "sweep.json", "--out", "out"], "sweep.json", *expected)

    def test_axes(self):
        self.refused({"axes": {"params.chunkz": [1]}}, "/axes/params.chunkz", "'params.chunks'")
        self.refused({"axes": {"chunks": [1]}}, "/axes/chunks", "'params.chunks'")
        self.refused({"axes": {"params.chunks": []}}, "/axes/params.chunks", "has no value")
        self.refused({"axes": {"params.chunks": [2, 2]}}, "/axes/params.chunks", "twice")
        self.refused({"axes": {"params.chunks": 2}}, "/axes/params.chunks", "expected a list")
        self.refused({"axes": {"params.chunks": {"from": 1, "to": 4}}}, "/axes/params.chunks", "'by'", "'times'")
        self.refused({"axes": {"params.chunks": {"from": 4, "to": 1, "by": 1}}}, "/axes/params.chunks/to", "4")
        self.refused({"axes": {"params.chunks": {"from": 1, "to": 4, "by": 0}}}, "/axes/params.chunks/by")
        self.refused({"axes": {"workload.gemm.m": {"from": 1, "to": 1e9, "by": 1}}}, "more than 1000000 values")
        self.refused({"axes": {"params.agent": {"files": "*"}}}, "/axes/params.agent", "topology, workload")
        self.refused({"axes": {"topology": ["h200_5"]}}, "h200_5", "did you mean 'h200_")
        self.refused({"axes": {"schedule": ["hetero_fused_1f"]}}, "'hetero_fused_1f'", "'hetero_fused_1d'")
        self.refused({"zipped": [{"params.chunks": [1, 2], "params.agent": ["dma"]}]}, "/zipped/0/params.agent", "has 1")
        self.refused({"zipped": [{}]}, "/zipped/0", "is empty")
        self.refused({"zipped": [{"params.chunks": [2, 2], "params.agent": ["cu", "cu"]}]}, "/zipped/0", "[2,\"cu\"] twice")
        self.refused({"points": []}, "/points", "no point")
        self.refused({"axes": {"params.chunks": [2]}, "points": [{"params.chunks": 4}]}, "'params.chunks' twice")
        part = "what_if.topology.fabric.0"
        self.refused({"axes": {part: ["2x"], part + ".bandwidth_GBps": ["2x"]}},
                     f"sweeps '{part}' and '{part}.bandwidth_GBps', which is a part of it")
        self.refused({}, "sweeps nothing")
        self.refused({"axes": {"params.chunks": [2]}, "wher": []}, "/wher")

    def test_values_with_which_nothing_runs(self):
        self.refused({"axes": {"params.chunks": [2, 0]}}, "point 1", "/params/chunks", "is 0")
        self.refused({"axes": {"params.agent": ["dma", "sdma"]}}, "point 1", "/params/agent", "'sdma'", "dma")
        self.refused({"axes": {"workload.gemm.k": [-5]}}, "/workload/gemm/k", "-5")
        self.refused({"axes": {"what_if.device.dma.enginez": [4]}}, "dma.enginez")

    def test_constraints(self):
        axes = {"axes": {"params.chunks": [2, 4]}}
        self.refused({**axes, "where": ["chunk > 2"]}, "/where/0", "there is no 'chunk'", "'chunks'")
        self.refused({**axes, "where": ["chunks > 2", "chunks >"]}, "/where/1", "'chunks >'")
        self.refused({**axes, "where": ["chunks = 2"]}, "/where/0", "expected a comparison")
        self.refused({**axes, "where": ["schedule > 3"]}, "/where/0", "'schedule > 3'")
        self.refused({**axes, "where": ["chunks > 4"]}, "/where", "none of the 2 combinations")

    def test_folders(self):
        self.sweep({"axes": {"params.chunks": [1, 2, 4]}})
        again = ["sweep", "sweep.json", "--out", "out"]
        self.assert_refused(again, "out", "--resume")
        self.assert_refused(["sweep", "sweep.json"], "--out")
        self.assert_refused(["sweep", "sweep.json", "--out", "none", "--resume"], "none", "no sweep")
        self.assert_refused(["sweep", "sweep.jsn", "--out", "new"], "sweep.jsn")
        self.assert_refused(["sweep", "sweep.json", "--point", "3"], "--point is 3", "2")
        self.file("sweep.json", {"schema": 1, "name": "test", "base": BASE, "axes": {"params.chunks": [1, 2, 8]}})
        self.assert_refused([*again, "--resume"], "out/sweep.json", "another sweep")
        (self.folder / "file").touch()
        self.assert_refused(["sweep", "sweep.json", "--out", "file/in"], "file/in", "cannot be created")
