"""Routes that models may call (`tool=True`), and the MCP servers that offer them. Loaded where one is asked for.

A server is known by an attribute of its handler: this file imports nothing of `core.mcp`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from core.errors import RegistrationError
from core.routing.table import Route


def servers_in(entries: Iterable[Route]) -> list[Any]:
    """The MCP servers (`core.mcp.MCP`) whose routes are among these, in order."""
    return [server for entry in entries if (server := getattr(entry.handler, "__core_mcp__", None)) is not None]


def offer_tools(entries: Sequence[Route]) -> None:
    """Give the routes that are tools to the servers among the routes. Raises RegistrationError where there is none."""
    servers = servers_in(entries)
    for entry in entries:
        if entry.tool and not servers:
            raise RegistrationError(
                f"{entry.label}: tool=True, and no MCP server would offer it. Make one: MCP(app, …)"
            )
        for server in servers if entry.tool else ():
            server.offer(entry.handler)


def tools_at(entry: Route, servers: Iterable[Any]) -> tuple[str, ...]:
    """The names of the tools that call a route; of all its tools for the route of a server."""
    return tuple(
        tool.name
        for server in servers
        for tool in server.tools.values()
        if entry.handler is not None and entry.handler in (server.handler, tool.function)
    )


def bodiless_at(entry: Route, servers: Iterable[Any]) -> tuple[str, ...]:
    """The names of the tools that call a route and send no body."""
    tools = (tool for server in servers for tool in server.tools.values() if tool.function is entry.handler)
    return tuple(tool.name for tool in tools if not tool.sends_body)
