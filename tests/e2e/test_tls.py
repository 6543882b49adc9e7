"""redis-py over TLS, with certificates that the test makes."""

import json
import shutil
import signal
import subprocess

import pytest

from racks import WIND_DOWN, binary

redis = pytest.importorskip("redis")

HOST = "127.0.0.1"


def openssl(folder, *words):
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    """An authority, and a server and a client that it signed."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    root = ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority", "-days", "2"]
    openssl(folder, "req", "-x509", *curve, *root)
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\n")
    for name in ("server", "client"):
        openssl(folder, "req", *curve, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        signed = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2", "-extfile", "names"]
        openssl(folder, "x509", "-req", "-in", f"{name}.csr", "-out", f"{name}.pem", *signed)
    return folder


@pytest.fixture(scope="module")
def rack(certificates):
    """The addresses of a rack whose nodes listen for plain text and for TLS."""
    program = binary()
    if program is None:
        pytest.skip("rackmem is not built: cargo build -p rackmem-cli, or set RACKMEM_BIN")
    files = ["--tls-cert", "server.pem", "--tls-key", "server.key", "--tls-ca", "ca.pem"]
    size = ["--nodes", "2", "--port", "0", "--tls-port", "0", "--buckets", "1024", "--memory", "512M"]
    command = [program, "--json", "kv", *size, *files]
    rack = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=certificates)
    try:
        yield json.loads(rack.stdout.readline())
        rack.send_signal(signal.SIGINT)
        assert rack.wait(WIND_DOWN) == 130
    finally:
        rack.kill()
        rack.wait()


def port(address):
    return int(address.rsplit(":", 1)[1])


def once():
    """Says no to a second try: a refusal is what is asked for."""
    return redis.retry.Retry(redis.backoff.NoBackoff(), 0)


def secure(rack, certificates, node, **more):
    ca = str(certificates / "ca.pem")
    more |= {"retry": once(), "decode_responses": True}
    return redis.Redis(HOST, port(rack["tls"][node]), ssl=True, ssl_ca_certs=ca, **more)


def own(certificates):
    return {"ssl_certfile": str(certificates / "client.pem"), "ssl_keyfile": str(certificates / "client.key")}


def test_values_pass_over_tls_at_every_node(rack, certificates):
    first = secure(rack, certificates, 0, **own(certificates))
    last = secure(rack, certificates, 1, **own(certificates))
    long = "v" * 3_000_000
    assert first.set("long", long)
    assert last.get("long") == long
    with last.pipeline() as pipe:
        for number in range(2000):
            pipe.incr("counter")
        assert pipe.execute()[-1] == 2000
    plain = redis.Redis(HOST, port(rack["listening"][0]), decode_responses=True)
    assert plain.get("counter") == "2000"


def test_clients_without_a_certificate_are_refused(rack, certificates):
    with pytest.raises(redis.exceptions.ConnectionError):
        secure(rack, certificates, 0).ping()


def test_plain_text_is_refused_where_tls_is_spoken(rack, certificates):
    with pytest.raises(redis.exceptions.RedisError):
        redis.Redis(HOST, port(rack["tls"][0]), retry=once(), socket_timeout=20).ping()
    assert secure(rack, certificates, 0, **own(certificates)).ping()


def test_users_log_in_at_any_node(rack, certificates):
    first = secure(rack, certificates, 0, **own(certificates))
    assert first.acl_setuser("reader", enabled=True, passwords=["+secret"], keys=["public:*"], commands=["+get"])
    assert first.set("public:a", "1") and first.set("private:a", "1")
    reader = secure(rack, certificates, 1, username="reader", password="secret", **own(certificates))
    assert reader.get("public:a") == "1"
    with pytest.raises(redis.exceptions.NoPermissionError):
        reader.get("private:a")
    with pytest.raises(redis.exceptions.NoPermissionError):
        reader.set("public:a", "2")
    assert first.acl_deluser("reader") == 1
