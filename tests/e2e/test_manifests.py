"""Manifests for Kubernetes against its schemas, and what they say of each other."""

import contextlib
import os
import pathlib
import subprocess
import time
import tomllib

import kubernetes_validate
import pytest
import racks
import yaml

MANIFEST = pathlib.Path(__file__).parents[2] / "examples/kubernetes/rack.yaml"


@pytest.fixture
def parts():
    return list(yaml.safe_load_all(MANIFEST.read_text()))


def test_each_part_fits_its_schema(parts):
    assert [part["kind"] for part in parts] == [
        "ConfigMap", "Secret", "Service", "Service", "StatefulSet"
    ]
    for part in parts:
        kubernetes_validate.validate(part, "1.31", strict=True)
    # The check finds what is wrong.
    pods = parts[-1]
    pods["spec"]["replica"] = pods["spec"].pop("replicas")
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(pods, "1.31", strict=True)


def test_pods_are_the_nodes_of_the_file(parts):
    config, _, names, _, pods = parts
    rack = tomllib.loads(config["data"]["rack.toml"])
    spec = pods["spec"]
    name, service = pods["metadata"]["name"], spec["serviceName"]
    assert service == names["metadata"]["name"] and names["spec"]["clusterIP"] == "None"
    port = names["spec"]["ports"][0]["port"]
    wanted = [f"{name}-{nth}.{service}:{port}" for nth in range(spec["replicas"])]
    assert rack["nodes"] == wanted
    container = spec["template"]["spec"]["containers"][0]
    assert port in [one["containerPort"] for one in container["ports"]]
    mount = container["volumeMounts"][0]["mountPath"]
    assert f"{mount}/rack.toml" in container["command"]


def test_the_command_serves_the_store(parts, tmp_path):
    """The container's command in three processes of this host, each with an address of its own."""
    redis = pytest.importorskip("redis")
    program = racks.binary()
    if program is None:
        pytest.skip("rackmem is not built: cargo build -p rackmem-cli, or set RACKMEM_BIN")
    container = parts[-1]["spec"]["template"]["spec"]["containers"][0]
    pid = os.getpid()
    address = f"127.{64 | pid >> 16 & 63}.{pid >> 8 & 255}.{pid & 255}"
    names = tomllib.loads(parts[0]["data"]["rack.toml"])["nodes"]
    file = tmp_path / "rack.toml"
    file.write_text(f"nodes = {[f'{address}:{7400 + nth}' for nth in range(len(names))]}\n")
    command = [str(file) if "/" in word else word for word in container["command"]]
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    environment[container["env"][0]["name"]] = "secret"
    with contextlib.ExitStack() as stack:
        for nth in range(len(names)):
            script = container["args"][0].replace("0.0.0.0:6379", f"{address}:{6400 + nth}")
            assert script != container["args"][0]
            process = subprocess.Popen(
                [*command, script], env={**environment, "RACKMEM_NODE": str(nth)}
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
        clients = [
            redis.Redis(address, 6400 + nth, password="secret", decode_responses=True)
            for nth in range(len(names))
        ]
        for client in clients:
            end = time.monotonic() + racks.WIND_DOWN
            while not serves(client, redis.ConnectionError):
                assert time.monotonic() < end, "a pod does not serve"
                time.sleep(0.1)
        for client in clients:
            client.incr("pods")
        assert [client.get("pods") for client in clients] == [str(len(names))] * len(names)


def serves(client, not_yet):
    try:
        return client.ping()
    except not_yet:
        return False
