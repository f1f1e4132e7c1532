"""What an application's MCP servers list, as a file that is committed, and as a document whose changes are known.

A tool is compared as an operation is: its arguments are a body, its structured content is an answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from core.http.json import JsonObject
from core.routing.offered import servers_in

if TYPE_CHECKING:
    from core.app import App


def listed(app: App[Any]) -> dict[str, object]:
    """The lists of each MCP server of an application, by its path, as a client with every right gets them.

    Raises RegistrationError for an application that cannot start.
    """
    app.check()
    found: dict[str, object] = {}
    for server in servers_in(app.entries()):
        resources = [each.listed() for each in server.resources.values()]
        found[server.path] = {
            "tools": [each.listed() for each in server.tools.values()],
            "prompts": [each.listed() for each in server.prompts.values()],
            "resources": [each for each in resources if "uri" in each],
            "resourceTemplates": [each for each in resources if "uriTemplate" in each],
        }
    return {"mcp": found}


def as_document(lists: Mapping[str, Any]) -> JsonObject:
    """The lists as a document of OpenAPI, for `core.openapi.changes`."""
    paths: dict[str, object] = {}
    schemas: dict[str, object] = {}

    def content(schema: object) -> JsonObject:
        key = f"{len(schemas)}"
        # The references in a list are within the schema that they are in.
        schemas[key] = json.loads(json.dumps(schema).replace('"$ref": "#/', f'"$ref": "#/schemas/{key}/'))
        return {"content": {"application/json": {"schema": schemas[key]}}}

    for path, server in lists["mcp"].items():
        for name, takes, gives in _operations(server):
            body, answers = {"required": True, **content(takes)}, {"200": content(gives)}
            operation = {"operationId": name.partition("/")[2], "requestBody": body, "responses": answers}
            paths[f"{path} {name}"] = {"post": operation}
    return {"paths": paths, "schemas": schemas}


def _operations(server: Mapping[str, Any]) -> Iterator[tuple[str, Any, object]]:
    for tool in server["tools"]:
        yield f"tools/{tool['name']}", tool["inputSchema"], tool.get("outputSchema", {})
    for prompt in server["prompts"]:
        arguments = prompt.get("arguments", ())
        takes = {
            "type": "object",
            "properties": {each["name"]: {"type": "string"} for each in arguments},
            "required": [each["name"] for each in arguments if each["required"]],
            "additionalProperties": False,
        }
        yield f"prompts/{prompt['name']}", takes, {}
    for resource in (*server["resources"], *server["resourceTemplates"]):
        yield f"resources/{resource.get('uri') or resource['uriTemplate']}", {}, {}
