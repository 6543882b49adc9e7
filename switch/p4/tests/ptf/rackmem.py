"""Golden packets for PTF (https://github.com/p4lang/ptf): a test a case, against a switch that is already running.

The P4 program runs with -DWAYS=2 -DSETS=4 -DLOCK_WAYS=2 -DLOCK_SETS=2 and the ports that `golden.json` names: node n behind
port n + 1, the control plane behind port 64. PTF is attached to them and to port 70, by which packets come:

    simple_switch -i 1@veth1 -i 2@veth3 ... -i 64@veth129 -i 70@veth141 rackmem.json
    ptf --test-dir switch/p4/tests/ptf -i 1@veth0 -i 2@veth2 ... -i 64@veth128 -i 70@veth140 \
        --test-params "control='simple_switch_CLI --thrift-port 9090'"

`control` is a program that takes lines of BMv2's command line. For another target, write what `Control` does for it: the lines
are table rows, multicast groups and registers by their names in the program (docs/p4.md).
"""

import json
import os
import shlex
import subprocess

import ptf
import ptf.testutils as testutils
from ptf.base_tests import BaseTest

# By which all packets come: the program does not ask by which port.
INPUT = 70

with open(os.path.join(os.path.dirname(__file__), "golden.json")) as file:
    GOLDEN = json.load(file)


class Control:
    """The control plane of a running BMv2."""

    rack_is_connected = False

    def __init__(self, program):
        self.program = shlex.split(program)

    def run(self, lines):
        told = subprocess.run(
            self.program, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True
        )
        wrong = [line for line in told.stdout.splitlines() if "rror" in line or "Invalid" in line]
        assert not wrong, wrong

    def begin(self, case):
        """Empties the registers and serves the case's epoch. The rack is the same for all cases, and is told once."""
        lines = [] if Control.rack_is_connected else GOLDEN["rack"]
        self.run(lines + case["commands"])
        Control.rack_is_connected = True

    def freeze(self):
        self.run([GOLDEN["freeze"]])


class Golden(BaseTest):
    """Plays the case of its class."""

    case = None

    def setUp(self):
        super().setUp()
        self.dataplane = ptf.dataplane_instance
        self.dataplane.flush()
        self.control = Control(testutils.test_param_get("control"))
        self.control.begin(self.case)

    def play(self, steps):
        for frame, expected in steps:
            testutils.send_packet(self, INPUT, bytes.fromhex(frame))
            for port, frame in expected:
                testutils.verify_packet(self, bytes.fromhex(frame), port)
        testutils.verify_no_other_packets(self)

    def runTest(self):
        self.play(self.case["prefix"])
        if self.case["frozen"]:
            self.control.freeze()
        self.play(self.case["packets"])


def class_of(case):
    """PTF finds tests as classes of a module."""
    name = "".join(c if c.isalnum() else "_" for c in case["name"])
    return type(name, (Golden,), {"case": case, "__doc__": case["about"], "__module__": __name__})


for CASE in GOLDEN["cases"]:
    TEST = class_of(CASE)
    globals()[TEST.__name__] = TEST
# Only the cases are tests.
del Golden, TEST
