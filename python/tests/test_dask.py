"""Tasks of Dask: each worker is a node, and an array comes to it as its name."""

import numpy as np
import pytest
from conftest import addresses

import rackmem

distributed = pytest.importorskip("distributed", reason="no Dask: pip install distributed")


def join(path, node):
    rackmem.join(path, node)


def fill(array, first, count):
    """What a task does: its own rows, and a count that all tasks share."""
    array[first : first + count] = np.arange(first, first + count)[:, None]
    return rackmem.Counter(None, "filled").add(count)


def leave():
    rackmem.current().close()


def test_tasks_fill_one_array(tmp_path):
    path = tmp_path / "rack.toml"
    path.write_text(f"nodes = {addresses(3)}\n")
    with rackmem.join(path, 0) as rack:
        array = rackmem.array(rack, "rows", (64, 100), "i8")
        counter = rackmem.Counter(rack, "filled")
        with (
            distributed.LocalCluster(
                n_workers=2,
                threads_per_worker=1,
                dashboard_address=None,
                worker_dashboard_address=None,
                local_directory=str(tmp_path),
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            workers = list(client.scheduler_info()["workers"])
            for node, worker in enumerate(workers, 1):
                client.run(join, str(path), node, workers=[worker])
            tasks = [
                client.submit(fill, array, first, 8, pure=False, workers=[workers[at % 2]])
                for at, first in enumerate(range(0, 64, 8))
            ]
            assert max(client.gather(tasks)) == 64
            assert (np.asarray(array) == np.arange(64)[:, None]).all()
            assert counter.value == 64
            client.run(leave)
