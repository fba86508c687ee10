"""Chakra execution traces: workloads to and from them, with protoc as a second reader of the files."""
import json
import shutil
import subprocess

from sim_case import ROOT, SimTestCase, without_clock

PROTO = ROOT / "sim/chakra/execution_trace.proto"
RUN = ["--topology", "h200_8", "--schedule", "concurrent", "--workload"]


def messages(content):
    """The messages of a file, each behind its length."""
    at = 0
    while at < len(content):
        length = shift = 0
        while True:
            byte = content[at]
            at += 1
            length |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        yield content[at:at + length]
        at += length


class Chakra(SimTestCase):
    def decoded(self, message, kind):
        done = subprocess.run(["protoc", f"--proto_path={PROTO.parent}", f"--decode=overlap.chakra.{kind}", PROTO.name],
                              input=message, capture_output=True, check=True)
        return done.stdout.decode()

    def test_a_workload_runs_as_well_from_a_trace(self):
        self.assertIn("8 files", self.output("chakra", "write", "--workload", "llama3_70b_mlp_layer", "--ranks", "8", "--out", "mlp"))
        self.assertIn("2 collective 2 gemm 1 memory_bound", self.output("chakra", "read", "mlp.3.et", "--out", "mlp.json"))
        # That it is for 8 GPUs is all that the list did not say.
        shipped = self.result(*RUN, "llama3_70b_mlp_layer")
        (self.folder / "own").mkdir()
        self.output("chakra", "write", "--workload", "llama3_70b_mlp_layer", "--ranks", "8", "--out", "own/mlp")
        for given in ("own", "mlp", "mlp.0.et", "mlp.json"):
            result = self.result(*RUN, given)
            self.assertEqual(result["makespan_us"], shipped["makespan_us"])
        batch = self.output("batch", self.file("runs.jsonl", json.dumps({"topology": "h200_8", "schedule": "concurrent", "workload": "mlp"})))
        self.assertEqual(without_clock(json.loads(batch)), without_clock(result | {"config": json.loads(batch)["config"]}))

    def test_protoc_reads_what_is_written(self):
        if shutil.which("protoc") is None:
            self.skipTest("no protoc")
        self.output("chakra", "write", "--workload", "llama3_70b_mlp_layer", "--ranks", "8", "--out", "mlp")
        metadata, *nodes = messages((self.folder / "mlp.7.et").read_bytes())
        self.assertIn('version: "0.0.4"', self.decoded(metadata, "GlobalMetadata"))
        texts = [self.decoded(node, "Node") for node in nodes]
        self.assertEqual(len(texts), 5)
        # 32768 x 8192 x 2 bytes are gathered of 8 ranks; ALL_GATHER is 2.
        for part in ("type: COMM_COLL_NODE", f"int64_val: {32768 * 8192 * 2 // 8}", "int64_val: 2\n"):
            self.assertIn(part, texts[0])
        for part in ("type: COMP_NODE", "data_deps: 0", f"uint64_val: {2 * 32768 * 7168 * 8192}"):
            self.assertIn(part, texts[1])

    def test_refused(self):
        self.output("chakra", "write", "--workload", "llama3_70b_mlp_layer", "--ranks", "4", "--out", "four")
        self.assert_refused(["chakra", "read", "none"], "none", "NAME.0.et")
        self.assert_refused(["chakra", "read", self.file("a.0.et", '{"schema": 1}')], "a.0.et: message 0 says that 123 bytes follow")
        self.assert_refused([*RUN, "four"], "is for 4 GPUs, but the topology has 8")
        (self.folder / "four.2.et").unlink()
        self.assert_refused(["chakra", "read", "four"], "four.2.et: is missing, but four.3.et is there")
        grouped = self.file("grouped.json", {"schema": 1, "name": "grouped", "operators": [
            {"name": "sum", "type": "collective", "collective": "all_reduce", "bytes": 1e6, "dtype": "bf16", "group": {"size": 2, "stride": 1}}]})
        self.assert_refused(["chakra", "write", "--workload", grouped, "--ranks", "4", "--out", "x"], "'sum' is a collective of groups")
        self.assert_refused(["chakra", "write", "--workload", "llama3_70b_mlp_layr", "--ranks", "2", "--out", "x"], "llama3_70b_mlp_layer")
