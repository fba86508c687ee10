"""scripts/sweep.sbatch under a real Slurm: a controller and a node of this machine, for the time of the test."""
import getpass
import os
import shutil
import socket
import subprocess
import time

from sim_case import ROOT, SimTestCase

SWEEP = {"schema": 1, "name": "small", "base": {"topology": "mi300x_8", "schedule": "hetero_fused_1d"},
         "axes": {"workload": {"files": "ficco_g*"}, "params.chunks": [2, 4], "params.agent": ["dma", "cu"]}}
CONFIG = """
ClusterName=local
SlurmctldHost={host}
SlurmctldPort={controller}
SlurmdPort={node}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
MpiDefault=none
NodeName={host} CPUs=2 State=UNKNOWN
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


class Slurm(SimTestCase):
    def setUp(self):
        super().setUp()
        for program in ("slurmctld", "slurmd", "sbatch", "mpirun"):
            if shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") is None:
                self.skipTest(f"no {program} here (packages slurmctld, slurmd, slurm-client, openmpi-bin)")
        if os.geteuid() != 0:
            self.skipTest("slurmd needs root")
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        host = socket.gethostname().split(".")[0]
        config = CONFIG.format(host=host, controller=free_port(), node=free_port(), folder=self.folder, user=getpass.getuser())
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / self.file("slurm.conf", config)),
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OVERLAP_SIM": os.environ["SIM"], "PATH": os.environ["PATH"] + ":/usr/sbin"}
        for program in ("slurmctld", "slurmd"):
            daemon = subprocess.Popen([program, "-D"], env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self.addCleanup(daemon.wait)
            self.addCleanup(daemon.terminate)
        for _ in range(100):
            if "idle" in self.slurm("sinfo", "--noheader", "--format=%T").stdout:
                return
            time.sleep(0.2)
        self.skipTest("slurmd does not start on this machine: " + (self.folder / "slurmd.log").read_text()[-300:])

    def slurm(self, *args):
        return subprocess.run(args, cwd=self.folder, env=self.environment, capture_output=True, encoding="utf-8", timeout=120)

    def test_a_sweep_by_two_processes_handed_in_twice(self):
        sweep = self.folder / self.file("small.json", SWEEP)
        self.output("sweep", str(sweep), "--out", "expected")
        job = ["sbatch", "--wait", "--ntasks=2", "--output=job.txt", str(ROOT / "scripts" / "sweep.sbatch"), str(sweep), "out"]
        for ran in ("64 run", "0 run"):  # 16 workloads, 2 chunk counts, 2 agents; then nothing is left
            done = self.slurm(*job)
            said = (self.folder / "job.txt").read_text(encoding="utf-8")
            self.assertEqual(done.returncode, 0, done.stderr + said)
            self.assertIn("64 points; " + ran, said)
            for name in ("points.csv", "points.jsonl"):
                self.assertEqual((self.folder / "out" / name).read_bytes(), (self.folder / "expected" / name).read_bytes())


