import os
import subprocess
import sys

import numpy as np
import pytest

import rackmem


def test_what_one_node_writes_all_nodes_read(rack):
    here = rackmem.array(rack.node(0), "grid", (1000, 512), "f8")
    there = rackmem.array(rack.node(2), "grid", (1000, 512), "f8")
    here[10:20] = np.arange(512)
    assert (there[15] == np.arange(512)).all()
    assert there[9].sum() == 0
    there[3, 5] = 7.5
    assert here[3, 5] == 7.5
    assert np.asarray(here).sum() == 10 * np.arange(512).sum() + 7.5
    assert len(here) == 1000 and here.ndim == 2 and here.nbytes == 1000 * 512 * 8


def test_it_is_a_real_array(rack):
    here = rackmem.array(rack.node(0), "m", (4, 4), "i4").mapped()
    there = rackmem.array(rack.node(1), "m", (4, 4), "i4").mapped()
    assert isinstance(here, np.ndarray) and here.flags.writeable
    here += 1
    there *= 3
    assert (here == 3).all()
    np.add.at(here, (1, 1), 5)
    assert there[1, 1] == 8 and there.sum() == 15 * 3 + 8


def test_other_libraries_take_the_same_memory(rack):
    here = rackmem.array(rack.node(0), "tensor", (4, 4), "f4")
    taken = np.from_dlpack(here)
    assert taken.shape == (4, 4) and taken.dtype == np.float32
    there = rackmem.array(rack.node(1), "tensor")
    there[2, 3] = 7
    assert taken[2, 3] == 7
    view = memoryview(here.mapped())
    assert view.format == "f" and view.shape == (4, 4)
    # The memory lasts as long as whoever has it.
    del here, view
    there[2, 3] = 8
    assert taken[2, 3] == 8


def test_an_array_is_found_by_its_name(rack):
    rackmem.array(rack, "a", (3, 2), "f4")[1, 1] = 2
    found = rackmem.array(rack.node(1), "a")
    assert (found.shape, found.dtype, found[1, 1]) == ((3, 2), np.dtype("f4"), 2)
    with pytest.raises(rackmem.NotFoundError):
        rackmem.array(rack, "b")


LOST = """
import os, rackmem
rack = rackmem.local(2)
a = rackmem.array(rack.node(1), "a", 100_000, "i8")
mapped = a.mapped()
mapped[0] = 1

def lost(element, stores, error):
    print(abs(element - 50_000) < 512, stores, type(error).__name__, flush=True)
    if HOW == "ends":
        os._exit(7)
    raise KeyError("in vain")

a.on_lost(lost)
rack.close()
mapped[50_000] = 1
"""


@pytest.mark.parametrize("how", ["ends", "fails"])
def test_a_program_is_asked_about_what_cannot_be_had(how):
    program = [sys.executable, "-c", f"HOW = {how!r}\n{LOST}"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    assert done.stdout == "True True ClosedError\n", done
    # The signal that there would have been without a handler.
    assert done.returncode == (7 if how == "ends" else -7), done
    assert ("in vain" in done.stderr) == (how == "fails"), done


def test_another_shape_or_type_is_refused_and_named(rack):
    rackmem.array(rack, "a", (3, 2), "f4")
    for shape, dtype in [((2, 3), "f4"), ((3, 2), "i4"), ((30, 2), "f4"), (6, "f4")]:
        with pytest.raises(rackmem.MismatchError, match=r"is \(3, 2\) of float32, not"):
            rackmem.array(rack.node(1), "a", shape, dtype)
    with pytest.raises(ValueError):
        rackmem.array(rack, "a", (3, 3))
    with pytest.raises(TypeError):
        rackmem.array(rack, "o", 3, "O")


def test_records_and_odd_shapes(rack):
    kind = np.dtype([("id", "i8"), ("at", "f4", (3,))])
    a = rackmem.array(rack, "records", 10, kind)
    a[2] = (7, (1, 2, 3))
    found = rackmem.array(rack.node(1), "records")
    assert found.dtype == kind and found[2]["id"] == 7 and (found[2]["at"] == [1, 2, 3]).all()
    one = rackmem.array(rack, "one", (), "i8")
    one[...] = 5
    assert rackmem.array(rack.node(2), "one", (), "i8")[()] == 5
    assert rackmem.array(rack, "none", (0, 4)).size == 0


@pytest.mark.parametrize(
    "dtype",
    [
        np.dtype([("p", [("x", "i4"), ("y", "i4")]), ("m", "f4", (2, 3))]),
        np.dtype([("a", "u1"), ("b", "f8")], align=True),
        np.dtype({"names": ["a", "b"], "formats": ["u1", "u2"], "offsets": [4, 8], "itemsize": 24}),
        np.dtype([(("a title", "a"), ">i2"), ("b", "S3")]),
    ],
    ids=["nested", "aligned", "holes", "titles"],
)
def test_any_type_of_records_is_found_as_it_is(rack, dtype):
    here = rackmem.array(rack.node(0), "records", 3, dtype)
    there = rackmem.array(rack.node(1), "records")
    assert there.dtype == dtype and there.shape == (3,)
    name = dtype.names[-1]
    here[name] = 7
    assert (there[name] == here[name]).all() and there.nbytes == 3 * dtype.itemsize


def test_shapes_are_integers_of_any_kind(rack):
    assert rackmem.array(rack, "a", np.int64(5)).shape == (5,)
    assert rackmem.array(rack, "b", np.arange(1, 3)).shape == (1, 2)
    # As in NumPy, an array of arrays has their dimensions.
    assert rackmem.array(rack, "c", 5, ("f4", (2, 3))).shape == (5, 2, 3)
    assert rackmem.array(rack, "c").dtype == np.float32
    for shape in (2.5, (2, 2.5), "ab"):
        with pytest.raises(TypeError):
            rackmem.array(rack, "d", shape)


def test_reads_and_writes_by_calls(rack):
    a = rackmem.array(rack.node(0), "a", 10_000, "i8")
    b = rackmem.array(rack.node(1), "a", 10_000, "i8")
    a.write(5, range(9_000))
    assert (b.read(5, 9_005) == np.arange(9_000)).all()
    assert (b.mapped()[5:9_005] == np.arange(9_000)).all()
    b[100] = -1
    assert a.read(100, 101)[0] == -1
    with pytest.raises(IndexError):
        a.write(9_999, [1, 2])


def test_more_than_the_cache_holds(rack):
    a = rackmem.array(rack.node(0), "big", 2 << 20, "i8")
    a[:] = np.arange(2 << 20)
    b = rackmem.array(rack.node(1), "big", 2 << 20, "i8")
    assert b.mapped().sum() == (2 << 20) * ((2 << 20) - 1) // 2
    b[::1024] += 1
    assert a[1024] == 1025 and a[1025] == 1025


def test_system_calls_find_pinned_pages(rack):
    here = rackmem.array(rack.node(0), "file", (4096,), "u1")
    there = rackmem.array(rack.node(1), "file")
    read, write = os.pipe()
    try:
        there.mapped()[:] = 7
        with pytest.raises(OSError, match="address"):
            os.writev(write, [here.mapped()])
        with here.pinned():
            assert os.writev(write, [here.mapped()]) == 4096
        assert set(os.read(read, 4096)) == {7}
        there.mapped()[:] = 8
        os.write(write, bytes([9]) * 4096)
        with here.pinned(stores=True) as pinned:
            assert os.readv(read, [here.mapped()]) == 4096
            pinned.release()
        assert (there.mapped() == 9).all()
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("faults", ["signal", "thread", "mprotect"])
def test_faults_come_in_several_ways(rack, faults):
    def open_at(node):
        return rackmem.array(rack.node(node), faults, (4,), "i8")

    arrays = [open_at(node) for node in range(2)]
    views = [memoryview(a._region.map(faults=faults)).cast("q") for a in arrays]
    for round in range(50):
        views[round % 2][-1] += 1
    assert views[0][-1] == 50
    with pytest.raises(ValueError, match="carrier"):
        arrays[0]._region.map(faults="carrier")


BLOCKED = """
import signal, threading
import rackmem

rack = rackmem.local(2)
here, there = (rackmem.array(rack.node(node), "a", 4, "i8") for node in range(2))
view = memoryview(here._region.map(faults="thread")).cast("q")

def store():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    view[-1] = 7

thread = threading.Thread(target=store)
thread.start()
thread.join()
print(there.read(3, 4)[0])
"""


def test_a_thread_may_block_signals_where_threads_handle_faults():
    done = subprocess.run([sys.executable, "-c", BLOCKED], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "7\n"), done


# The system refuses userfaultfd from here on, as filters of containers do: a program of four steps,
# as bytes of `struct sock_filter`.
FILTERED = """
import ctypes, struct
import rackmem

steps = [(0x20, 0, 0, 0), (0x15, 0, 1, NUMBER), (0x06, 0, 0, 0x50001), (0x06, 0, 0, 0x7fff0000)]
steps = b"".join(struct.pack("=HBBI", *step) for step in steps)
held = ctypes.create_string_buffer(steps)
program = ctypes.create_string_buffer(struct.pack("@HP", 4, ctypes.addressof(held)))
libc = ctypes.CDLL(None, use_errno=True)
long = ctypes.c_ulong
assert libc.prctl(38, long(1), long(0), long(0), long(0)) == 0
assert libc.prctl(22, long(2), program, long(0), long(0)) == 0, ctypes.get_errno()

rack = rackmem.local(1)
array = rackmem.array(rack, "a", 4, "i8")
try:
    array.mapped()
except rackmem.NoPagingError as error:
    print(error.code, "userfaultfd" in str(error))
array.write(0, [1, 2])
view = memoryview(array._region.map(faults="mprotect")).cast("q")
view[-4] += 6
print(array.read(0, 2))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="numbers of system calls are x86-64's")
def test_without_userfaultfd_there_are_calls():
    program = FILTERED.replace("NUMBER", "323")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "no-paging True\n[7 2]\n"), done


def test_operators_are_those_of_numpy(rack):
    array = rackmem.array(rack, "a", (3, 4), "f8")
    found = rackmem.array(rack.node(1), "a")
    array += 2
    array[0] *= 3
    assert isinstance(array, rackmem.Array)
    expected = np.full((3, 4), 2.0)
    expected[0] = 6
    assert (found == expected).all() and not (found != expected).any()
    for function in (
        lambda a: a + 1,
        lambda a: 1 - a,
        lambda a: a / a,
        lambda a: 2**a,
        lambda a: a @ np.ones(4),
        lambda a: -abs(a),
        lambda a: a > 2,
        lambda a: divmod(a, 4),
        lambda a: divmod(4, a),
        lambda a: np.arange(4) + a,
        lambda a: a.sum(axis=1),
        lambda a: a.T,
        lambda a: 6.0 in a,
    ):
        assert np.array_equal(function(found), function(expected))
    found -= found
    assert array.mean() == 0 and not array.any()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(array)
    with pytest.raises(AttributeError):
        array.no_such_thing
    one = rackmem.array(rack, "one", (), "i4")
    one[...] = 5
    assert int(one) == 5 and float(one) == 5.0 and "abcdefg"[one] == "f" and bool(one)


def test_what_was_read_can_be_changed(rack):
    array = rackmem.array(rack, "a", 4, "i4")
    copy = array.read()
    copy += 1
    assert array.read().sum() == 0


@pytest.mark.parametrize("shape", [0, (0, 5), 1, (7, 3)])
def test_arrays_with_copies(rack, shape):
    array = rackmem.array(rack, "a", shape, "i2", copies=3)
    array[...] = 4
    found = rackmem.array(rack.node(2), "a")
    assert found.shape == array.shape and np.array_equal(found, array)
    rackmem.array(rack.node(1), "a", shape, "i2", copies=3).write(0, np.ones(shape, "i2"))
    assert found.read().sum() == found.size
    with pytest.raises(rackmem.MismatchError, match="3 copies"):
        rackmem.array(rack.node(1), "a", shape, "i2")
    for copies in (0, 2, 8):
        with pytest.raises(ValueError):
            rackmem.array(rack, "b", shape, "i2", copies=copies)


def test_elements_have_bytes(rack):
    with pytest.raises(TypeError, match="U8"):
        rackmem.array(rack, "a", 3, "U")
