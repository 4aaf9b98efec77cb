"""Attacks by an HTTP server, each of which fails."""

from __future__ import annotations

import gzip
import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpcore2
import pytest

from llm_kb.references.errors import (
    BlockedAddressError,
    FetchError,
    LedAwayError,
    TooLargeError,
)
from llm_kb.references.sources import connections
from llm_kb.references.sources.rules import Policy
from llm_kb.references.sources.web import request
from tests.references.sites import Answer, Site, serve_site

TRUSTING = Policy(allow_hosts=("127.0.0.1",), timeout=5, max_bytes=100_000)
STRICT = Policy(timeout=5)


def resolve_to(*addresses: str) -> Callable[[str, int], Sequence[str]]:
    return lambda host, port: addresses


def test_a_page_is_read(site: Site) -> None:
    response = request(site.put("/a?b=c d", "hello"), TRUSTING)
    assert (response.status, response.body, response.content_type) == (404, b"", "text/html")
    site.put("/a?b=c%20d", "hello")
    assert request(f"{site.url}/a?b=c d", TRUSTING).body == b"hello"


def test_loopback_is_refused_unless_the_user_allows_it(site: Site) -> None:
    with pytest.raises(BlockedAddressError, match="allow_hosts"):
        request(site.put("/", "secret"), STRICT)
    assert site.requests == []


@pytest.mark.parametrize("host", ["localhost", "2130706433", "0x7f.1", "[::1]", "127.1", "0"])
def test_other_names_of_loopback_are_refused(site: Site, host: str) -> None:
    port = site.url.rpartition(":")[2]
    with pytest.raises(FetchError) as caught:
        request(f"http://{host}:{port}/", TRUSTING)
    assert "private or reserved" in str(caught.value) or "cannot resolve" in str(caught.value)
    assert site.requests == []


def test_a_name_that_resolves_to_loopback_is_refused(site: Site) -> None:
    policy = Policy(timeout=5, resolver=resolve_to("127.0.0.1"))
    with pytest.raises(BlockedAddressError):
        request(site.url.replace("127.0.0.1", "evil.example"), policy)
    assert site.requests == []


def test_one_private_address_among_public_ones_is_refused() -> None:
    policy = Policy(timeout=5, resolver=resolve_to("93.184.216.34", "10.0.0.1"))
    with pytest.raises(BlockedAddressError, match=r"10\.0\.0\.1"):
        request("http://evil.example/", policy)


def test_what_was_checked_is_what_is_connected_to(site: Site) -> None:
    """A second answer of the name server (rebinding) is never asked for."""
    asked: list[str] = []

    def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"] if len(asked) == 1 else ["127.0.0.2"]

    site.put("/", "hello")
    policy = Policy(timeout=5, allow_hosts=("wiki.corp",), resolver=rebinding)
    assert request(site.url.replace("127.0.0.1", "wiki.corp") + "/", policy).body == b"hello"
    assert asked == ["wiki.corp"]
    assert site.received[0]["host"].startswith("wiki.corp:")


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://localhost/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "//10.0.0.1/",
    ],
)
def test_a_redirect_into_a_private_network_is_refused(site: Site, target: str) -> None:
    with pytest.raises(BlockedAddressError):
        request(site.redirect("/a", target), TRUSTING)


@pytest.mark.parametrize(
    "target", ["file:///etc/passwd", "ftp://e.org/", "gopher://e.org/", "data:,x"]
)
def test_a_redirect_to_another_protocol_is_refused(site: Site, target: str) -> None:
    with pytest.raises(FetchError, match="not a web page"):
        request(site.redirect("/a", target), TRUSTING)


def test_redirects_are_followed_so_far_and_no_further(site: Site) -> None:
    for n in range(8):
        site.redirect(f"/{n}", f"/{n + 1}")
    site.put("/8", "end")
    assert request(f"{site.url}/3", TRUSTING).body == b"end"
    with pytest.raises(FetchError, match="more than 5 redirects"):
        request(f"{site.url}/0", TRUSTING)


def test_a_redirect_to_a_host_that_was_not_planned_is_refused(site: Site) -> None:
    site.put("/b", "b")
    url = site.redirect("/a", site.url.replace("127.0.0.1", "localhost") + "/b")
    policy = Policy(timeout=5, allow_hosts=("127.0.0.1", "localhost"))
    assert request(url, policy).body == b"b"
    with pytest.raises(LedAwayError, match=r"localhost:.* was not approved"):
        request(url, replace(policy, hosts=frozenset({site.url.removeprefix("http://")})))


def test_ten_declared_gigabytes_are_not_waited_for(site: Site) -> None:
    url = site.answer("/big", Answer(b"x", headers={"Content-Length": "10000000000"}))
    with pytest.raises(TooLargeError, match="10,000,000,000 bytes"):
        request(url, TRUSTING)


def test_an_endless_body_is_cut_off(site: Site) -> None:
    sent = 0

    def pour(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        handler.send_response(200)
        handler.send_header("Connection", "close")
        handler.end_headers()
        handler.close_connection = True
        for _ in range(10_000):
            handler.wfile.write(b"x" * 100_000)
            sent += 100_000

    with pytest.raises(TooLargeError, match="over the limit of 100,000"):
        request(site.answer("/pour", pour), TRUSTING)
    assert sent < 100_000_000


def test_a_decompression_bomb_is_not_unpacked(site: Site) -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(bomb) < 100_000
    url = site.answer("/bomb", Answer(bomb, headers={"Content-Encoding": "gzip"}))
    with pytest.raises(TooLargeError, match="over the limit"):
        request(url, TRUSTING)


def test_compressed_pages_are_read(site: Site) -> None:
    headers = {"Content-Encoding": "gzip"}
    url = site.answer("/z", Answer(gzip.compress(b"hello" * 1000), headers=headers))
    assert request(url, TRUSTING).body == b"hello" * 1000
    assert site.received[0]["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(
            Answer(gzip.compress(b"hello" * 1000)[:-20], headers={"Content-Encoding": "gzip"}),
            "ended before",
            id="truncated gzip",
        ),
        pytest.param(
            Answer(b"no gzip", headers={"Content-Encoding": "gzip"}),
            "Not a gzipped file",
            id="no gzip",
        ),
        pytest.param(
            Answer(b"x", headers={"Content-Encoding": "br"}), "'br' was not asked for", id="brotli"
        ),
    ],
)
def test_broken_encodings_are_errors(site: Site, answer: Answer, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        request(site.answer("/x", answer), TRUSTING)


def test_a_body_shorter_than_declared_is_an_error(site: Site) -> None:
    def hang_up(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b"x" * 10)
        handler.close_connection = True

    with pytest.raises(FetchError):
        request(site.answer("/short", hang_up), TRUSTING)


@pytest.mark.parametrize(
    ("location", "message"),
    [
        pytest.param("http://[bad/", "an invalid address", id="bracket"),
        pytest.param("http://e.org:port/", "an invalid address", id="port"),
        pytest.param("http://e.org:99999/", "an invalid address", id="large port"),
        pytest.param("ftp://e.org/", "not a web page's", id="scheme"),
        pytest.param("http://-e.org/", "an invalid address", id="host"),
    ],
)
def test_a_redirect_to_nowhere_is_an_error(site: Site, location: str, message: str) -> None:
    with pytest.raises(FetchError, match=message):
        request(site.redirect("/x", location), TRUSTING)


@pytest.mark.parametrize("url", ["http://127.0.0.1:99999/", "http://127.0.0.1/\udc80"])
def test_an_address_that_is_none_is_an_error(url: str) -> None:
    with pytest.raises(FetchError):
        request(url, TRUSTING)


def test_a_size_of_five_thousand_digits_is_refused(site: Site) -> None:
    url = site.answer("/x", Answer(b"x", headers={"Content-Length": "9" * 5000}))
    with pytest.raises(FetchError, match="bad Content-Length"):
        request(url, TRUSTING)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["head", "body"])
def test_a_server_that_drips_is_given_up_at_the_deadline(site: Site, part: str) -> None:
    """Each byte comes in time; only the whole does not."""

    def drip(handler: BaseHTTPRequestHandler) -> None:
        if part == "body":
            handler.send_response(200)
            handler.send_header("Content-Length", "1000")
            handler.end_headers()
        else:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\nX: ")
        for _ in range(100):
            handler.wfile.write(b"x")
            handler.wfile.flush()
            time.sleep(0.1)

    with pytest.raises(FetchError, match="no complete answer within 1 s"):
        request(site.answer("/drip", drip), Policy(allow_hosts=("127.0.0.1",), timeout=1))


def test_a_refused_connection_is_an_error() -> None:
    with pytest.raises(FetchError, match="refused"):
        request("http://127.0.0.1:9/", TRUSTING)


class OwnWay(httpcore2.ConnectionPool):
    """A pool that connects as it likes."""

    def __init__(self, **options: object) -> None:
        super().__init__()


def test_nothing_is_fetched_if_the_library_does_not_connect_through_us(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = site.put("/", "hello")
    connections.is_proven.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(httpcore2, "ConnectionPool", OwnWay)
        with pytest.raises(FetchError, match="install another version"):
            request(url, TRUSTING)
    connections.is_proven.cache_clear()
    assert site.requests == []
    assert request(url, TRUSTING).body == b"hello"


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "ALL_PROXY"])
def test_no_proxy_is_used(site: Site, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert request(site.put("/", "hello"), TRUSTING).body == b"hello"


def test_a_server_at_an_address_of_ipv6_is_named_in_brackets() -> None:
    hosts: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            hosts.append(self.headers["Host"])
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing on the console."""

    class Server(HTTPServer):
        address_family = socket.AF_INET6

    try:
        server = Server(("::1", 0), Handler)
    except OSError:
        pytest.skip("this machine has no IPv6")
    with server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        request(f"http://[::1]:{server.server_port}/", Policy(allow_hosts=("::1",), timeout=5))
        thread.join()
    assert hosts == [f"[::1]:{server.server_port}"]


# TLS


@pytest.fixture
def certificate(tmp_path: Path) -> Path:
    """A certificate for `wiki.test`, signed by nobody, with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    path = tmp_path / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=wiki.test", "-addext", "subjectAltName=DNS:wiki.test"),
            *("-keyout", str(tmp_path / "key.pem"), "-out", str(path)),
        ],
        check=True,
        capture_output=True,
    )
    return path


@pytest.fixture
def secure_site(certificate: Path) -> Iterator[Site]:
    """A site that speaks TLS, under any name that leads to it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with serve_site(context) as site:
        yield site


def secure_policy(**options: Any) -> Policy:
    return Policy(
        allow_hosts=("wiki.test", "other.test"),
        timeout=5,
        resolver=resolve_to("127.0.0.1"),
        **options,
    )


def test_tls_is_spoken_with_the_name_and_to_the_address_that_was_checked(
    secure_site: Site, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    secure_site.put("/", "secret")
    url = secure_site.url.replace("127.0.0.1", "wiki.test")
    assert request(f"{url}/", secure_policy()).body == b"secret"
    with pytest.raises(FetchError, match=r"other\.test|Hostname mismatch"):
        request(url.replace("wiki", "other") + "/", secure_policy())


def test_a_certificate_nobody_signed_is_refused(secure_site: Site) -> None:
    url = secure_site.url.replace("127.0.0.1", "wiki.test")
    with pytest.raises(FetchError, match="CERTIFICATE_VERIFY_FAILED"):
        request(f"{url}/", secure_policy())
    assert secure_site.requests == []


def test_a_redirect_from_https_to_http_is_refused(
    secure_site: Site, site: Site, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    plain = site.url.replace("127.0.0.1", "wiki.test")
    secure_site.redirect("/", plain)
    url = secure_site.url.replace("127.0.0.1", "wiki.test")
    with pytest.raises(FetchError, match="from https to http"):
        request(f"{url}/", secure_policy())


@pytest.mark.slow
def test_a_handshake_that_never_ends_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        policy = Policy(allow_hosts=("127.0.0.1",), timeout=1)
        with pytest.raises(FetchError, match="no complete answer within 1 s"):
            request(f"https://127.0.0.1:{port}/", policy)
