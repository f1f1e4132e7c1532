"""Draws the diagrams of the documentation: `python docs/diagrams.py` writes them to docs/assets.

Each has a title and a description for those who do not see it. Colours are variables, so that a diagram follows the
scheme of the page that it is part of, and the reader's own scheme where it is opened alone. The layers are those of the
import contract.
"""

from __future__ import annotations

import tomllib
from html import escape as escaped
from pathlib import Path

HERE = Path(__file__).parent
STYLE = """\
  svg.diagram { --d-box: #f4f6f5; --d-edge: #6b7775; --d-own: #d9efec; --d-ink: #17201f; --d-dim: #4a5654;
    --d-line: #0b5d5b; --d-bad: #a3301a; font-family: system-ui, sans-serif; font-size: 15px; }
  @media (prefers-color-scheme: dark) { svg.diagram { --d-box: #1b2625; --d-edge: #7f8e8b; --d-own: #123d3a;
    --d-ink: #e8eeec; --d-dim: #b3bfbc; --d-line: #6fd0c8; --d-bad: #ff9a85; } }
  .diagram rect { fill: var(--d-box); stroke: var(--d-edge); } .diagram rect.own { fill: var(--d-own); stroke: var(--d-line); }
  .diagram rect.ring { fill: none; stroke: var(--d-line); } .diagram rect.bad { stroke: var(--d-bad); }
  .diagram text { fill: var(--d-ink); } .diagram .dim { fill: var(--d-dim); font-size: 13px; }
  .diagram .name { font-weight: 600; } .diagram .mono { font-family: ui-monospace, monospace; font-size: 14px; }
  .diagram path { fill: none; stroke: var(--d-line); stroke-width: 1.8; } .diagram path.bad { stroke: var(--d-bad); }
  .diagram path.back { stroke-dasharray: 5 4; } .diagram marker path { fill: var(--d-line); stroke: none; }
  .diagram marker path.bad { fill: var(--d-bad); }
"""


def escape(text: str) -> str:
    """Words as they stand between tags."""
    return escaped(text, quote=False)


class Diagram:
    """A drawing of boxes, lines and words."""

    def __init__(self, name: str, width: int, height: int, title: str, about: str) -> None:
        self.name = name
        head = f'<svg xmlns="http://www.w3.org/2000/svg" class="diagram" viewBox="0 0 {width} {height}" role="img"'
        tip = (
            '<marker id="{0}-{1}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" orient="auto">'
        )
        tip += '<path class="{1}" d="M0 0 10 5 0 10z"/></marker>'
        self.parts = [
            f'{head} aria-labelledby="{name}-title {name}-about">',
            f'<title id="{name}-title">{escape(title)}</title>',
            f'<desc id="{name}-about">{escape(about)}</desc>',
            f"<style>\n{STYLE}</style>",
            f"<defs>{tip.format(name, 'good')}{tip.format(name, 'bad')}</defs>",
        ]

    def box(
        self, x: float, y: float, width: float, height: float, *lines: str, kind: str = "box", mono: bool = False
    ) -> None:
        """A box with a name in bold, and smaller lines below it."""
        self.parts.append(f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="7"/>')
        top = y + height / 2 - (len(lines) - 1) * 9.5 + 5
        for number, line in enumerate(lines):
            style = f"name{' mono' if mono else ''}" if number == 0 else "dim"
            self.text(x + width / 2, top + number * 19, line, style, "middle")

    def ring(self, x: float, y: float, width: float, height: float, label: str) -> None:
        """A frame around other things, with its name at the top."""
        self.parts.append(f'<rect class="ring" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="10"/>')
        self.text(x + 14, y + 21, label, "dim")

    def text(self, x: float, y: float, line: str, style: str = "dim", anchor: str = "start") -> None:
        """A line of words."""
        self.parts.append(f'<text class="{style}" x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(line)}</text>')

    def line(self, path: str, *, bad: bool = False, back: bool = False) -> None:
        """A line with a tip at its end; a way back is dashed."""
        kind = " ".join(word for word, on in (("bad", bad), ("back", back)) if on)
        self.parts.append(
            f'<path class="{kind}" d="{path}" marker-end="url(#{self.name}-{"bad" if bad else "good"})"/>'
        )

    def svg(self) -> str:
        """The file."""
        return "\n".join([*self.parts, "</svg>\n"])


LIFE = (
    "A message comes to a host, which makes a Request. The table finds the route. The chain of middleware runs inward to "
    "the handler and outward again. Then the response leaves with the headers that were staged, and the on_send callbacks "
    "run. An error goes to the error handler, whose answer leaves in place of what was sent."
)


def life_of_a_request() -> Diagram:
    """A request through its middleware."""
    made = Diagram("life-of-a-request", 720, 440, "The life of a request", LIFE)
    made.box(10, 40, 120, 60, "host", "makes a Request")
    made.box(160, 40, 130, 60, "Request", "read when asked")
    made.box(320, 40, 110, 60, "routes", "the first match")
    made.ring(470, 10, 240, 250, "the application's middleware")
    made.ring(485, 45, 210, 200, "the router's middleware")
    made.ring(500, 80, 180, 150, "the route's middleware")
    made.box(520, 125, 140, 64, "handler", "status and body", kind="own")
    made.line("M130 70 H158")
    made.line("M290 70 H318")
    made.line("M430 70 C455 70 460 145 518 145")
    made.line("M520 172 C440 190 420 250 400 318", back=True)
    made.text(402, 215, "the chain unwinds", anchor="end")
    made.box(265, 320, 180, 64, "the response leaves", "with staged headers", kind="own")
    made.box(95, 320, 130, 64, "on_send", "in order, once")
    made.line("M265 352 H228")
    made.line("M95 352 C40 352 40 200 68 104", back=True)
    made.box(515, 320, 195, 84, "error handler", "what was sent is dropped,", "staged headers stay", kind="bad")
    made.line("M610 189 V317", bad=True)
    made.line("M515 357 H448", bad=True)
    made.text(620, 300, "raised", anchor="start")
    return made


def life_of_a_request_upright() -> Diagram:
    """The same for a narrow page, which shows it in place of the other."""
    made = Diagram("life-of-a-request-upright", 340, 700, "The life of a request", LIFE)
    made.box(10, 10, 130, 60, "host", "makes a Request")
    made.box(200, 10, 130, 60, "Request", "read when asked")
    made.box(200, 105, 130, 60, "routes", "the first match")
    made.ring(10, 200, 320, 230, "the application's middleware")
    made.ring(25, 235, 290, 180, "the router's middleware")
    made.ring(40, 270, 260, 130, "the route's middleware")
    made.box(100, 308, 140, 64, "handler", "status and body", kind="own")
    made.line("M140 40 H198")
    made.line("M265 70 V103")
    made.line("M265 165 C265 240 235 250 222 306")
    made.line("M130 372 C120 420 95 440 92 497", back=True)
    made.text(112, 466, "the chain unwinds")
    made.box(10, 500, 165, 64, "response", "leaves with headers", kind="own")
    made.box(10, 612, 165, 64, "on_send", "in order, once")
    made.line("M92 564 V610")
    made.box(205, 500, 125, 84, "error handler", "drops the body,", "keeps headers", kind="bad")
    made.line("M225 372 C250 410 266 440 267 497", bad=True)
    made.text(320, 486, "raised", anchor="end")
    made.line("M205 532 H178", bad=True)
    return made


def layers() -> Diagram:
    """The packages by their layers: those of the import contract."""
    linter = tomllib.loads((HERE.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    found = [layer.replace(":", "|").split("|") for layer in linter["contracts"][0]["layers"]]
    forbidden = next(each["forbidden_modules"] for each in linter["contracts"] if "A worker loads" in each["name"])
    tools = {name.removeprefix("core.") for name in forbidden} | {"runtime"}
    about = "From the top to the bottom, each package imports only what is below it: " + "; ".join(
        ", ".join(package.strip() for package in layer) for layer in found
    )
    rows = [layer[at : at + 5] for layer in found for at in range(0, len(layer), 5)]
    made = Diagram("layers", 720, len(rows) * 38 + 44, "The packages of core, in layers", f"{about}.")
    for number, row in enumerate(rows):
        width = (720 - 10 * (len(row) + 1)) / len(row)
        for column, package in enumerate(each.strip() for each in row):
            kind = "box" if package in tools else "own"
            made.box(10 + column * (width + 10), 8 + number * 38, width, 31, package, kind=kind, mono=True)
    made.text(
        360,
        len(rows) * 38 + 30,
        "green: what a worker may load; the rest runs on a developer's machine or a server",
        anchor="middle",
    )
    return made


def one_application() -> Diagram:
    """The places to run."""
    about = (
        "The same application, unchanged, runs in a test over fakes, on a developer's machine with core dev, on one server with "
        "core serve on CPython, in workerd as one process or a cluster, and on the hosted platform as a Python worker."
    )
    made = Diagram("one-application", 720, 330, "One application, five places to run", about)
    made.box(270, 130, 180, 70, "App[Env]", "unchanged", kind="own", mono=True)
    for x, y, width, path, lines in (
        (10, 20, 200, "M270 145 C240 130 220 95 213 75", ("a test", "fakes, no runtime")),
        (510, 20, 200, "M450 145 C480 130 500 95 507 75", ("your machine", "core dev: SQLite, explorer")),
        (10, 240, 200, "M270 185 C240 200 220 235 213 255", ("one server", "core serve, on CPython")),
        (260, 240, 200, "M360 200 V237", ("your own edge", "workerd, or a cluster of it")),
        (510, 240, 200, "M450 185 C480 200 500 235 507 255", ("the hosted platform", "a Python worker")),
    ):
        made.box(x, y, width, 70, *lines)
        made.line(path)
    return made


def life_of_a_message() -> Diagram:
    """A message of a queue."""
    about = (
        "A handler sends a message to the queue. The queue gives batches to the consumer. What ended well is acknowledged and "
        "gone. What raised, or was given to retry, waits and comes again with one more attempt. After the last attempt it goes "
        "to the dead letter queue, from where the explorer sends it again."
    )
    made = Diagram("life-of-a-message", 720, 330, "The life of a message", about)
    made.box(10, 40, 150, 64, "handler", "OUTBOX.send(mail)")
    made.box(215, 40, 130, 64, "queue", "keeps, delays", kind="own")
    made.box(420, 40, 150, 64, "consumer", "a batch of messages")
    made.box(620, 40, 90, 64, "gone", "once")
    made.line("M160 72 H213")
    made.line("M345 72 H418")
    made.line("M570 72 H618")
    made.text(594, 60, "ack", anchor="middle")
    made.line("M480 104 C470 175 310 175 285 107", bad=True, back=True)
    made.text(380, 178, "raised, or retry(): one attempt more", anchor="middle")
    made.box(410, 230, 180, 70, "dead letter queue", "after the last attempt", kind="bad")
    made.line("M525 104 V227", bad=True)
    made.text(535, 170, "no attempt left")
    made.line("M410 265 C300 265 240 220 250 107", back=True)
    made.text(232, 262, "sent again from the explorer", anchor="middle")
    return made


def durable_object_room() -> Diagram:
    """A Durable Object with the people in it."""
    about = (
        "Requests for a room come to workers in many places. Each hands its WebSocket to the one object of that name, which "
        "does one thing at a time, keeps its state in storage of its own and sends each message to every member. While it is "
        "quiet the object may be evicted: the sockets stay open, and it is made again from its storage."
    )
    made = Diagram("durable-object-room", 720, 360, "A room: one object, many members", about)
    for number, (who, place) in enumerate((("Ada", "in Paris"), ("Bob", "in Lagos"), ("Eve", "in Lima"))):
        y = 30 + number * 105
        made.box(10, y, 100, 60, who, place)
        made.box(175, y, 140, 60, "worker", "the nearest one")
        made.line(f"M110 {y + 30} H173")
        made.line(f"M315 {y + 30} C370 {y + 30} 370 165 423 165")
    made.text(322, 345, 'ROOMS.get_by_name("tea")', "dim", "middle")
    made.ring(425, 40, 285, 280, "the object named tea: there is one")
    made.box(450, 75, 235, 64, "class Room", "one thing at a time", kind="own", mono=True)
    made.box(450, 160, 235, 64, "sockets", "each message to every member")
    made.box(450, 245, 235, 60, "storage", "its own; outlives the instance")
    return made


def types_to_handlers() -> Diagram:
    """Types, from the configuration to a handler."""
    about = (
        "wrangler.toml declares bindings and the migrations declare tables. The class Env has an attribute for each binding. "
        "core check and the mypy plugin compare both, in both directions. create_app(Env) hands the class on, so that "
        "req.env.DB, req.params and the rows of a statement have their types in a handler, and a wrong letter is an error "
        "before anything runs."
    )
    made = Diagram("types-to-handlers", 720, 330, "Types, from the configuration to a handler", about)
    made.box(10, 20, 190, 66, "wrangler.toml", "[[d1_databases]] DB", mono=True)
    made.box(10, 130, 190, 66, "migrations/*.sql", "CREATE TABLE users", mono=True)
    made.box(10, 240, 210, 66, '@app.get("/users/:id")', "the path", mono=True)
    made.box(275, 20, 170, 66, "class Env", "DB: D1Database", mono=True)
    made.box(520, 20, 190, 66, "req.env.DB", "D1Database", kind="own", mono=True)
    made.box(520, 130, 190, 66, "row.name", "a column of users", kind="own", mono=True)
    made.box(520, 240, 190, 66, 'req.params["id"]', "a parameter of the path", kind="own", mono=True)
    made.box(275, 130, 170, 66, "core check", "and the mypy plugin", kind="bad")
    made.line("M445 53 H518")
    made.line("M200 53 H273")
    made.line("M360 130 V89", bad=True)
    made.line("M200 163 H273", bad=True)
    made.line("M445 163 H518", bad=True)
    made.line("M220 260 C250 250 300 230 330 199", bad=True)
    made.line("M390 196 C420 230 470 262 518 270", bad=True)
    made.text(368, 262, "a wrong letter is an error here", anchor="middle")
    return made


DIAGRAMS = (
    life_of_a_request,
    life_of_a_request_upright,
    layers,
    one_application,
    life_of_a_message,
    durable_object_room,
    types_to_handlers,
)


if __name__ == "__main__":
    for draw in DIAGRAMS:
        drawn = draw()
        (HERE / "assets" / f"{drawn.name}.svg").write_text(drawn.svg(), "utf-8")
