"""What workers do in the tests of queues."""


def add(left, right):
    return left + right


def fail(why):
    raise ValueError(why)
