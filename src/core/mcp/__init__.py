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
else:

    def __getattr__(name: str) -> object:
        # Most servers ask nothing.
        if name != "elicit":
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from core.mcp.asking import elicit

        return elicit


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
    "Text",
    "ToolError",
    "elicit",
]
