"""An MCP server out of an application: tools, resources and prompts that are typed functions, and routes by name.

Model Context Protocol, revision 2026-07-28: one POST carries everything, and the server keeps nothing between two.
https://modelcontextprotocol.io/specification/2026-07-28
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.mcp.content import Audio, Content, Embedded, Image, Link, Message
from core.mcp.messages import Input
from core.mcp.registered import Hints, ParamHeader, ToolError
from core.mcp.server import MCP
from core.values import lazily

if TYPE_CHECKING:
    from core.mcp.asking import elicit
    from core.mcp.subscriptions import Subscriptions
else:  # most servers ask nothing, and tell of no changes
    __getattr__ = lazily(__name__, {"core.mcp.asking": "elicit", "core.mcp.subscriptions": "Subscriptions"})


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
    "ToolError",
    "elicit",
]
