"""RQ: jobs are put in at one node, done by a worker at another, and looked at from a third."""

import datetime

import pytest

redis = pytest.importorskip("redis")
rq = pytest.importorskip("rq")
pytestmark = pytest.mark.needs("eval", "blpop", "zadd", "publish", "hset", "sadd")


@pytest.fixture
def connections(nodes):
    opened = [redis.Redis.from_url(url) for url in nodes]
    yield opened
    for connection in opened:
        connection.close()


def work(program, url, *options):
    """A worker that ends when there is nothing to do."""
    command = ["-m", "rq.cli", "worker", "--burst", "--quiet", "--url", url, *options, "chores"]
    with program(*command) as worker:
        assert worker.wait(60) == 0


def test_results_and_failures(nodes, connections, program):
    queue = rq.Queue("chores", connection=connections[0])
    jobs = [queue.enqueue("chores.add", number, 1) for number in range(10)]
    broken = queue.enqueue("chores.fail", "no such luck")
    last = queue.enqueue("chores.add", 20, 22, depends_on=jobs[:2])
    work(program, nodes[1])
    seen = [rq.job.Job.fetch(job.id, connection=connections[2]) for job in [*jobs, last]]
    assert [job.return_value() for job in seen] == [*range(1, 11), 42]
    failed = rq.Queue("chores", connection=connections[2]).failed_job_registry
    assert failed.get_job_ids() == [broken.id]
    why = rq.job.Job.fetch(broken.id, connection=connections[2]).latest_result().exc_string
    assert "no such luck" in why
    assert queue.is_empty()


def test_a_failed_job_is_tried_again(nodes, connections, program):
    queue = rq.Queue("chores", connection=connections[1])
    job = queue.enqueue("chores.fail", "twice", retry=rq.Retry(max=2))
    work(program, nodes[0])
    seen = rq.job.Job.fetch(job.id, connection=connections[2])
    assert seen.retries_left == 0
    assert seen.get_status() == rq.job.JobStatus.FAILED


def test_the_scheduler_puts_a_job_in_when_it_is_due(nodes, connections, program, eventually):
    queue = rq.Queue("chores", connection=connections[0])
    job = queue.enqueue_in(datetime.timedelta(seconds=1), "chores.add", 2, 3)
    assert job.id in rq.Queue("chores", connection=connections[2]).scheduled_job_registry
    url = nodes[1]
    command = ["-m", "rq.cli", "worker", "--with-scheduler", "--quiet", "--url", url, "chores"]
    with program(*command):
        eventually(lambda: rq.job.Job.fetch(job.id, connection=connections[2]).is_finished)
    assert rq.job.Job.fetch(job.id, connection=connections[2]).return_value() == 5


def test_workers_at_all_nodes_share_a_queue(nodes, connections, program, eventually):
    """Every job is done once; the workers wait for jobs, blocked, before there are any."""
    commands = [
        ["-m", "rq.cli", "worker", "--quiet", "--url", url, "chores"] for url in nodes[:2]
    ]
    queue = rq.Queue("chores", connection=connections[2])
    with program(*commands[0]), program(*commands[1]):
        eventually(lambda: len(rq.Worker.all(connection=connections[2])) == 2)
        jobs = rq.Queue.enqueue_many(
            queue, [rq.Queue.prepare_data("chores.add", (n, n)) for n in range(12)]
        )
        eventually(lambda: all(job.get_status() == "finished" for job in jobs))
    assert [job.return_value() for job in jobs] == [2 * n for n in range(12)]
