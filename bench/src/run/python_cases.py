"""What `rackmem bench python` measures, as one of two nodes: cases as lines of JSON, of node 0.

python_cases.py SECONDS FABRIC
"""

import json
import multiprocessing
import multiprocessing.shared_memory
import sys
import time

import numpy as np
import rackmem

MIB = 1 << 20
# Handed over at the end.
OVER = 1 << 40


def tell(case, value, unit, baseline=None):
    print(json.dumps({"case": case, "value": value, "unit": unit, "baseline": baseline}), flush=True)


def each(seconds, f, many=1):
    """Nanoseconds that `f` takes, which does something so many times."""
    f()
    began, calls = time.perf_counter_ns(), 0
    while True:
        f()
        calls += 1
        took = time.perf_counter_ns() - began
        if took > seconds * 1e9:
            return took / calls / many


def alone(seconds, rack):
    """Elements and slices: of NumPy, of the standard library's shared memory, and of the rack."""
    memory = multiprocessing.shared_memory.SharedMemory(create=True, size=MIB)
    try:
        kinds = {
            "numpy": np.zeros(MIB // 8),
            "shared-memory": np.frombuffer(memory.buf, "f8"),
            "rack": rackmem.array(rack, "alone", MIB // 8, "f8").mapped(),
        }
        for kind, array in kinds.items():
            baseline = None if kind == "numpy" else "{}/numpy"
            array[:] = 1.0

            def element():
                for at in range(1000):
                    array[at]

            def total():
                array.sum()

            def copy():
                array.copy()

            for name, f, many, unit in (
                ("element", element, 1000, "ns"),
                ("sum-1M", total, 1000, "us"),
                ("copy-1M", copy, 1000, "us"),
            ):
                value = each(seconds, f, many)
                tell(f"{name}/{kind}", value, unit, baseline and baseline.format(name))
        del kinds, array
        by_call = rackmem.array(rack, "alone")
        tell("copy-1M/rack-by-call", each(seconds, by_call.read, 1000), "us", "copy-1M/numpy")
    finally:
        memory.close()
        memory.unlink()


class Turns:
    """Two nodes hand something over: each says how far it is in a page of its own."""

    def __init__(self, rack, me):
        flags = rackmem.array(rack, "turns", (2, 512), "i8").mapped()
        self.mine, self.theirs = flags[me, :1], flags[1 - me, :1]

    def reach(self, step):
        self.mine[0] = step

    def wait(self, step):
        while self.theirs[0] < step:
            time.sleep(0)


def by_page(array):
    """By loads and stores."""
    mapped = array.mapped()

    def write(value):
        mapped[:] = value

    return write, lambda: mapped


def by_call(array):
    """By calls that move all of it."""
    return (lambda value: array.write(0, np.full(array.size, value))), array.read


def hand_over(seconds, rack, me, fabric):
    """There and back through an array of the rack: half of that."""
    turns, step = Turns(rack, me), 0
    rounds = rackmem.Counter(rack, "rounds")
    for size, how in [(size, how) for size in (4096, MIB) for how in (by_page, by_call)]:
        array = rackmem.array(rack, f"handed-{size}-{how.__name__}", size // 8, "i8")
        write, read = how(array)
        count, began = 0, time.perf_counter_ns()
        while True:
            step += 1
            if me == 0:
                over = time.perf_counter_ns() - began > seconds * 1e9
                write(OVER if over else step)
                turns.reach(step)
                turns.wait(step)
                wanted = OVER if over else -step
            else:
                turns.wait(step)
                wanted = step
            found = read()
            first, last = found[0], found[-1]
            over = first == last == OVER
            if not over and not first == last == wanted:
                raise SystemExit(f"step {step}: {first} and {last}, not {wanted}")
            if me != 0:
                write(OVER if over else -step)
                turns.reach(step)
            count += 1
            if over:
                break
        if me == 0:
            took = (time.perf_counter_ns() - began) / count / 2 / 1000
            case = f"hand-over/{name(size)}/rack-{fabric}"
            case += "/calls" if how is by_call else ""
            tell(case, took, "us", f"hand-over/{name(size)}/pipe")
    rounds.add(1)
    while rounds.value < 2:
        time.sleep(0.001)


def name(size):
    return "1M" if size == MIB else "4K"


def echo(pipe):
    while (message := pipe.recv_bytes()) != b"":
        pipe.send_bytes(message)


def pipes(seconds):
    """The same through a pipe of `multiprocessing`: each side gets bytes of its own."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    other = context.Process(target=echo, args=(theirs,), daemon=True)
    other.start()
    for size in (4096, MIB):
        message = np.ones(size // 8, "i8").tobytes()

        def there_and_back():
            ours.send_bytes(message)
            ours.recv_bytes()

        tell(f"hand-over/{name(size)}/pipe", each(seconds, there_and_back, 2 * 1000), "us")
    ours.send_bytes(b"")
    other.join()


def objects_of_ray(seconds):
    """The same through Ray's store of objects: put, a call of an actor that answers with as much, get."""
    try:
        import ray
    except ImportError:
        reason = "hand-over/*/ray skipped: this Python has no Ray (`pip install ray`)"
        print(reason, file=sys.stderr)
        return
    ray.init(
        num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error",
        object_store_memory=256 * MIB,
    )

    @ray.remote
    class Echo:
        def take(self, array):
            return array.copy()

    echo = Echo.remote()
    for size in (4096, MIB):
        array = np.ones(size // 8, "i8")

        def there_and_back():
            ray.get(echo.take.remote(ray.put(array)))

        took = each(seconds, there_and_back, 2 * 1000)
        tell(f"hand-over/{name(size)}/ray", took, "us", f"hand-over/{name(size)}/pipe")
    ray.shutdown()


def main(seconds, fabric, first):
    with rackmem.from_env() as rack:
        me = rack.node().id
        if me == 0 and first == "first":
            pipes(seconds)
            objects_of_ray(seconds)
            alone(seconds, rack)
        hand_over(seconds, rack, me, fabric)


if __name__ == "__main__":
    main(float(sys.argv[1]), sys.argv[2], sys.argv[3])
