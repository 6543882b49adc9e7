"""Programs that real launchers start: each process is the node of its rank."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest
from conftest import addresses

HEAT = pathlib.Path(__file__).parent.parent / "examples" / "heat.py"
PROGRAM = [sys.executable, str(HEAT), "64", "20"]
# How long anything may take, in seconds.
PATIENCE = 120


def wanted(*programs):
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")


@pytest.fixture
def environment(tmp_path):
    """That of a program of a rack of two, whose nodes nobody has named."""
    path = tmp_path / "rack.toml"
    path.write_text(f"nodes = {addresses(2)}\n")
    return {**os.environ, "RACKMEM_CONFIG": str(path)}


def is_told(process):
    assert process.returncode == 0, process.stderr
    assert process.stdout.count("the same bits as one process alone") == 1, process.stdout


def test_mpirun_numbers_nodes(environment):
    wanted("mpirun")
    options = ["--oversubscribe", "-n", "2"]
    if os.geteuid() == 0:
        options.append("--allow-run-as-root")
    is_told(
        subprocess.run(
            ["mpirun", *options, *PROGRAM],
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    )


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@pytest.fixture
def slurm(tmp_path):
    """The configuration of a cluster of this host alone, which ends with the test."""
    wanted("slurmctld", "slurmd", "srun")
    if os.geteuid() != 0:
        pytest.skip("a daemon of Slurm that runs programs wants to be root")
    host = socket.gethostname().split(".")[0]
    (tmp_path / "state").mkdir()
    (tmp_path / "spool").mkdir()
    path = tmp_path / "slurm.conf"
    path.write_text(
        f"""ClusterName=one
SlurmctldHost={host}(127.0.0.1)
AuthType=auth/none
CredType=cred/none
SlurmUser=root
SlurmdUser=root
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={tmp_path}/state
SlurmdSpoolDir={tmp_path}/spool
SlurmctldPidFile={tmp_path}/controller.pid
SlurmdPidFile={tmp_path}/daemon.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
MpiDefault=none
SwitchType=switch/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=1 State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP
"""
    )
    environment = {**os.environ, "SLURM_CONF": str(path)}
    daemons = []
    try:
        for daemon in ("slurmctld", "slurmd"):
            with open(tmp_path / f"{daemon}.log", "w") as log:
                command = [daemon, "-D", "-f", str(path)]
                daemons.append(subprocess.Popen(command, stdout=log, stderr=log, env=environment))
        end = time.monotonic() + PATIENCE
        while True:
            asked = subprocess.run(
                ["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True
            )
            if asked.stdout.strip() == "idle":
                break
            told = "".join(log.read_text() for log in tmp_path.glob("*.log"))
            assert all(daemon.poll() is None for daemon in daemons), told
            assert time.monotonic() < end, told
            time.sleep(0.1)
        yield str(path)
    finally:
        for daemon in daemons:
            daemon.terminate()
            daemon.wait()


def test_slurm_numbers_nodes(environment, slurm):
    is_told(
        subprocess.run(
            ["srun", "-n", "2", "--overcommit", *PROGRAM],
            env={**environment, "SLURM_CONF": slurm},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
    )
