"""An application in workerd that fetches its issuer's keys over the runtime's own `fetch`,
and proves tokens with them.
"""

from __future__ import annotations

import datetime as dt
import http.server
import json
import os
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import NameOID
from jwt.algorithms import get_default_algorithms
from tests.runtime.conftest import Background, Make, Running, start_running
from tests.support.commands import Answer

from core.runtime.bundle import Bundle
from core.runtime.plan import Plan
from core.runtime.toolchain import Toolchain

MAIN = Path(__file__).parent / "jwks" / "main.py"
PLAN = Plan(name="jwks")
ISSUER = "https://issuer.test"

RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
KEYS: dict[str, Any] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSA_KEY),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "ES384": ec.generate_private_key(ec.SECP384R1()),
    "ES512": ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


SHORT = rsa.generate_private_key(public_exponent=65537, key_size=1024)


def public(algorithm: str, key: Any) -> dict[str, Any]:
    """The entry of a key in its issuer's set."""
    entry: dict[str, Any] = json.loads(get_default_algorithms()[algorithm].to_jwk(key.public_key()))
    return {**entry, "kid": algorithm, "alg": algorithm, "use": "sig"}


def token(algorithm: str, *, key: Any = None, kid: str | None = None, **claims: Any) -> str:
    """A token as an issuer signs it, with its own key unless another is given."""
    payload = {"sub": "ada", "iss": ISSUER, "exp": int(time.time()) + 300, **claims}
    headers = {"kid": algorithm if kid is None else kid}
    return jwt.encode(payload, KEYS[algorithm] if key is None else key, algorithm=algorithm, headers=headers)


class KeyServer:
    """The issuer's HTTPS server. `keys` are the entries of its set; None answers every request with 500.

    `elsewhere` is where it sends who asks, `pause` the seconds that it takes.
    """

    def __init__(self, folder: Path) -> None:
        self.keys: list[dict[str, Any]] | None = []
        self.asked = 0
        self.elsewhere: str | None = None
        self.pause = 0.0
        self.authority, certificate, key = write_certificates(folder)
        own = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                own.asked += 1
                time.sleep(own.pause)
                body = json.dumps({"keys": own.keys}).encode()
                self.send_response(500 if own.keys is None else 302 if own.elsewhere and self.path == "/keys" else 200)
                if own.elsewhere:
                    self.send_header("Location", own.elsewhere)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"https://localhost:{self._server.server_address[1]}/keys"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def write_certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Write an authority's certificate, one of localhost that it signed, and the key of the latter; their places."""
    now = dt.datetime.now(dt.UTC)
    authority, own = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())

    def begun(subject: str, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]))
            .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "an authority of this test")]))
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - dt.timedelta(hours=1))
            .not_valid_after(now + dt.timedelta(days=1))
        )

    root = (
        begun("an authority of this test", authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(authority, hashes.SHA256())
    )
    leaf = (
        begun("localhost", own)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(authority, hashes.SHA256())
    )
    secret = own.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    places = folder / "authority.pem", folder / "localhost.pem", folder / "localhost.key"
    for place, text in zip(
        places, (*(c.public_bytes(serialization.Encoding.PEM) for c in (root, leaf)), secret), strict=True
    ):
        place.write_bytes(text)
    return places


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyServer]:
    server = KeyServer(tmp_path_factory.mktemp("issuer"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def signed_in(make: Make, server: KeyServer) -> Bundle:
    """The bundle of the application, which knows where its issuer's keys are."""
    shared = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    own, short = (key.public_key().public_bytes(*shared) for key in (KEYS["ES256"], SHORT))
    settings = f"URL = {server.url!r}\nPEM = {own!r}\nSHORT_PEM = {short!r}\n"
    return make(MAIN, PLAN, files={"issuer.py": settings.encode()})


Start = Callable[[], Running]


@pytest.fixture
def node(
    tools: Toolchain, signed_in: Bundle, background: Background, server: KeyServer, tmp_path: Path
) -> Iterator[Start]:
    """Start a worker that has asked for no keys yet, and trusts the server's certificate as it trusts those
    of the web.
    """
    server.keys, server.asked = [public(algorithm, key) for algorithm, key in KEYS.items()], 0
    server.elsewhere, server.pause = None, 0.0
    started: list[Running] = []

    def start() -> Running:
        env = {**os.environ, "SSL_CERT_FILE": str(server.authority)}
        state = tmp_path / f"state{len(started)}"
        running = start_running(tools, signed_in, background, state, plan=PLAN, env=env, private_network=True)
        started.append(running)
        return running

    yield start
    for running in started:
        running.stop()


def ask(running: Running, given: str, path: str = "/me") -> Answer:
    return running.get(path, headers={"Authorization": f"Bearer {given}"})


def test_tokens_of_every_kind_of_key_let_in_by_keys_that_are_fetched_once(node: Start, server: KeyServer) -> None:
    running = node()
    for algorithm in KEYS:
        answer = ask(running, token(algorithm))
        assert (answer.status, answer.text) == (200, '{"sub":"ada"}'), (algorithm, running.lines)
    assert server.asked == 1
    # A key that is given by the application itself, as PEM.
    assert ask(running, token("ES256", sub="eve"), "/pem").json() == {"sub": "eve"}


def test_a_token_that_was_tampered_with_is_refused(node: Start, server: KeyServer) -> None:
    running = node()
    other = {"RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048), "ES256": KEYS["EdDSA"]}
    for algorithm in KEYS:
        head, payload, signature = token(algorithm).split(".")
        assert ask(running, f"{head}.{payload}.{signature}").status == 200
        forged = token(algorithm, sub="root").split(".")[1]
        assert ask(running, f"{head}.{forged}.{signature}").status == 401, algorithm
        turned = ("B" if signature[0] == "A" else "A") + signature[1:]
        assert ask(running, f"{head}.{payload}.{turned}").status == 401, algorithm
        assert ask(running, f"{head}.{payload}.").status == 401
    assert ask(running, token("RS256", key=other["RS256"])).status == 401
    # A good signature under the name of a key of another kind.
    assert ask(running, token("ES256", kid="RS256")).status == 401
    assert ask(running, token("RS256", exp=int(time.time()) - 10)).status == 401
    assert ask(running, token("RS256", iss="https://else.test")).status == 401
    answer = running.get("/me")
    assert (answer.status, answer.json()) == (401, {"error": "Unauthorized"})


def test_while_the_key_server_is_down_nobody_is_let_in_and_it_is_not_asked_by_every_request(
    node: Start, server: KeyServer
) -> None:
    running = node()
    server.keys = None
    for _ in range(3):
        answer = ask(running, token("RS256"))
        assert (answer.status, answer.json()) == (503, {"error": "Service Unavailable"})
    assert server.asked == 1
    running.said("could not be fetched")


def test_keys_that_are_there_outlive_the_server(node: Start, server: KeyServer) -> None:
    running = node()
    assert ask(running, token("RS256")).status == 200
    server.keys = None
    assert ask(running, token("RS256")).status == 200
    # A key that is not there is asked for within half a minute at the most once, which was at the start.
    assert ask(running, token("ES256", kid="new")).status == 401
    assert ask(running, token("ES256")).status == 200
    assert server.asked == 1


def test_requests_that_come_at_once_are_all_let_in(node: Start, server: KeyServer) -> None:
    running = node()
    server.pause = 0.3
    with ThreadPoolExecutor(8) as pool:
        waiting = [pool.submit(ask, running, token(algorithm)) for algorithm in [*KEYS, *KEYS]]
        answers = [answer.result() for answer in waiting]
    assert [answer.status for answer in answers] == [200] * len(answers), running.lines
    # The runtime lets no request wait for another's: those that came before there were keys asked for themselves.
    asked = server.asked
    assert asked <= 8
    assert ask(running, token("RS256")).status == 200
    assert server.asked == asked


def test_redirects_are_not_followed_and_a_server_that_takes_too_long_is_given_up(
    node: Start, server: KeyServer
) -> None:
    server.elsewhere = "/other"
    assert ask(node(), token("RS256")).status == 503
    assert server.asked == 1
    server.elsewhere, server.pause = None, 30.0
    began = time.monotonic()
    assert ask(node(), token("RS256")).status == 503
    assert time.monotonic() - began > 4


def test_a_key_of_too_few_bits_proves_nothing(node: Start, server: KeyServer) -> None:
    server.keys = [public("RS256", SHORT)]
    running = node()
    with pytest.warns(jwt.InsecureKeyLengthWarning):
        given = token("RS256", key=SHORT)
    assert ask(running, given).status == 401
    # The application's own key is its developer's mistake.
    assert ask(running, given, "/short").status == 500
    running.said("is too short: an RSA key has at least 2048 bits")
