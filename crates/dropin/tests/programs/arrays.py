"""Processes that take turns over one NumPy array in multiprocessing.shared_memory.

arrays.py WHO HOW_MANY ROUNDS
"""
import sys
import time
from multiprocessing import resource_tracker, shared_memory

import numpy as np

WORDS = 1 << 15

who, everyone, rounds = map(int, sys.argv[1:])
if who == 0:
    memory = shared_memory.SharedMemory(name="rack.arrays", create=True, size=8 * WORDS)
else:
    while True:
        try:
            memory = shared_memory.SharedMemory(name="rack.arrays")
            break
        except (FileNotFoundError, ValueError):  # not there, or not yet as long as it will be
            time.sleep(0.01)
array = np.ndarray((WORDS,), dtype=np.int64, buffer=memory.buf)
for _ in range(rounds):
    turn = array[0]
    while turn % everyone != who:
        turn = array[0]
    # What the one before has left in all of it, and something for the next one.
    assert (array[64:] == turn).all(), turn
    array[64:] += 1
    array[0] = turn + 1
while array[0] < rounds * everyone:
    time.sleep(0.001)
print(int(array[0]), int(array[64:].sum()), flush=True)
array[1 + who] = 1
while array[1 : 1 + everyone].sum() < everyone:
    time.sleep(0.001)
# Whoever attaches and ends would otherwise remove it (cpython issue 82300).
resource_tracker.unregister(memory._name, "shared_memory")
