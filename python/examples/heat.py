"""Heat flows through one array that several processes change, each its own rows.

    rackmem run -n 2 -- python heat.py [SIZE] [STEPS]

The rows of another process are read as one's own are. At the end the first process computes the same
alone, and compares every bit.
"""

import sys
import time

import numpy as np
import rackmem


def flow(new, old, first, end):
    """One step for some rows: each place gets the mean of its neighbours."""
    old_rows = old[first - 1 : end + 1]
    above, here, below = old_rows[:-2], old_rows[1:-1], old_rows[2:]
    new[first:end, 1:-1] = (above[:, 1:-1] + below[:, 1:-1] + here[:, :-2] + here[:, 2:]) / 4


def wait(arrived, goal):
    """Until so many have arrived."""
    arrived.add(1)
    while arrived.value < goal:
        time.sleep(0.0002)


def main(size=256, steps=100):
    with rackmem.from_env() as rack:
        me, nodes = rack.node().id, rack.node().nodes
        grids = [rackmem.array(rack, f"heat/{which}", (size, size), "f8") for which in "ab"]
        views = [grid.mapped() for grid in grids]
        arrived = rackmem.Counter(rack, "heat/arrived")
        # The edges stay as they are, and belong to nobody.
        first, end = (1 + (size - 2) * part // nodes for part in (me, me + 1))
        if me == 0:
            for view in views:
                view[0, :] = 100.0
        wait(arrived, nodes)

        began = time.perf_counter()
        for step in range(steps):
            flow(views[1 - step % 2], views[step % 2], first, end)
            wait(arrived, nodes * (step + 2))
        took = time.perf_counter() - began

        same = True
        if me == 0:
            alone = [np.zeros((size, size)) for _ in views]
            for grid in alone:
                grid[0, :] = 100.0
            for step in range(steps):
                flow(alone[1 - step % 2], alone[step % 2], 1, size - 1)
            same = np.array_equal(alone[steps % 2], np.array(views[steps % 2]))
            verdict = "the same bits as one process alone" if same else "NOT what one process alone has"
            print(f"{nodes} processes changed one array of {size} x {size} for {steps} steps:", end=" ")
            print(f"{verdict}; {took / steps * 1e3:.2f} ms a step")
        wait(arrived, nodes * (steps + 2))
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
