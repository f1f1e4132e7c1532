"""An MCP server out of an application: tools, resources and prompts that are typed functions, and routes by name.

Model Context Protocol, revision 2026-07-28: one POST carries everything, and the server keeps nothing between two.
https://modelcontextprotocol.io/specification/2026-07-28
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.mcp.content import Audio, Content, Embedded, Image, Link, Message, Text
from core.mcp.messages import Input
from core.mcp.registered import Hints, ParamHeader, ToolError
from core.mcp.server import MCP

if TYPE_CHECKING:
    from core.mcp.asking import elicit
    from core.mcp.subscriptions import Subscriptions
else:
    # Most servers ask nothing, and tell of no changes.
    _LATER = {"elicit": "core.mcp.asking", "Subscriptions": "core.mcp.subscriptions"}

    def __getattr__(name: str) -> object:
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(_LATER[name]), name)


__all__ = [
    "Audio",
    "Content",
    "Embedded",
    "Hints",
    "Image",
    "Input",
    "Link",
    "MCP",
    "Message",
    "ParamHeader",
    "Subscriptions",
    "Text",
    "ToolError",
    "elicit",
]
