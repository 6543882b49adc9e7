"""The application of the Celery worker under test and of its client, at different nodes."""

import os

import celery

_nodes = os.environ["NODES"].split()
app = celery.Celery("chores", broker=_nodes[1] + "/1", backend=_nodes[2] + "/2")
app.conf.update(
    broker_connection_retry_on_startup=True,
    task_track_started=True,
    worker_send_task_events=True,
    result_expires=600,
)


@app.task
def add(left, right):
    return left + right


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail(why):
    raise ValueError(why)


@app.task(bind=True, max_retries=2)
def stubborn(self):
    if self.request.retries < 2:
        raise self.retry(countdown=0)
    return self.request.retries
