"""What a person does with `examples/links`, over HTTP: sign up, make a link, see its clicks while others follow it."""

from __future__ import annotations

import re
from email.message import Message
from http.client import HTTPConnection
from urllib.parse import urlencode, urlsplit

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

__all__ = ["ALL_OF_IT", "Browser", "sign_up_and_see_a_click"]

TARGET = "https://example.com/a/long/address"
ALL_OF_IT = ["303", "0", "302", "1", "409", "403", "404", "303", "4404", "404"]
PATIENCE = 60


class Browser:
    """Requests of one person: forms, cookies, no redirects."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.cookies: dict[str, str] = {}

    def ask(self, path: str, form: dict[str, str] | None = None, **headers: str) -> tuple[int, str, Message]:
        """The status, the body and the headers of the answer: to a GET, or to a POST of `form`."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()} | {"Cookie": self.cookie}
        if form is not None:
            sent["Content-Type"] = "application/x-www-form-urlencoded"
        connection = HTTPConnection(urlsplit(self.address).netloc, timeout=PATIENCE)
        try:
            connection.request("GET" if form is None else "POST", path, None if form is None else urlencode(form), sent)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return answer.status, text, answer.headers

    @property
    def cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())


def sign_up_and_see_a_click(address: str) -> list[str]:
    """What was answered on the way, to compare with `ALL_OF_IT`."""
    ada, visitor = Browser(address), Browser(address)
    said: list[object] = [ada.ask("/accounts/sign-up", {"email": "ada@example.com", "password": "analytical"})[0]]
    ada.ask("/links", {"url": TARGET, "slug": "tea"})
    live = f"ws{address.removeprefix('http')}/links/tea/live"
    with connect(live, additional_headers={"Cookie": ada.cookie}, open_timeout=PATIENCE) as page:
        said.append(page.recv(PATIENCE))
        status, _, headers = visitor.ask("/tea")
        assert headers["Location"] == TARGET
        said += [status, page.recv(PATIENCE)]  # when the queue has handed the click over
        assert re.search(r">1</output>\s+clicks", ada.ask("/links/tea")[1])
        said.append(ada.ask("/links", {"url": TARGET, "slug": "tea"})[0])
        said.append(ada.ask("/links", {"url": TARGET}, Sec_Fetch_Site="cross-site")[0])
        bob = Browser(address)
        bob.ask("/accounts/sign-up", {"email": "bob@example.com", "password": "babylonian"})
        said += [bob.ask("/links/tea/delete", {})[0], ada.ask("/links/tea/delete", {})[0]]
        try:
            said.append(page.recv(PATIENCE))
        except ConnectionClosed as closed:
            said.append(closed.rcvd and closed.rcvd.code)
    said.append(visitor.ask("/tea")[0])
    assert ada.ask("/static/live.js")[0] == 200
    return [str(each) for each in said]
