"""The page of the documentation about a failure: by the class of the error, else by what its fix names.

Addresses are those of the site, `reference/api/d1/`. Loaded after a failure only.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from core.errors import NothingSentError
from core.explain.misuse import keys_of

MISTAKES: Final = "reference/mistakes/"
"""The page for what has a fix, and no page that is nearer."""

AWAIT: Final = "reference/checks/core-await/"
_AWAIT: Final = r"A call was not awaited|: await the call|^Write `await`|The call returns its result at once"

BY_CLASS: Final[Mapping[str, str]] = {
    "MigrationError": "how-to/sql/",
    "D1Error": "reference/api/d1/",
    "KVError": "reference/api/kv/",
    "R2Error": "reference/api/r2/",
    "QueueError": "reference/api/queue/",
    "DurableObjectError": "reference/api/durable-object/",
    "AiError": "reference/api/ai/",
    "ConfigurationError": "reference/configuration/",
    "EnvError": "reference/checks/core-env/",
    "MissingExtraError": "reference/packages/",
    "UnsupportedBindingError": "explanation/which-place/",
    "StoreError": "explanation/which-place/",
    "PathError": "reference/routing/",
    "OrderError": "reference/checks/core-order/",
    "OptionError": "reference/middleware/",
    "HandlerError": "reference/checks/core-handler/",
    "AlreadySentError": "reference/api/response/",
    "NextCalledTwiceError": "reference/api/handlers/",
    "NothingSentError": "reference/checks/core-handler/",
    "RegistrationError": "reference/api/app/",
    "ContractError": "how-to/contract/",
    "SyntaxError": "reference/checks/core-import/",
    "ImportError": "reference/checks/core-import/",
    "UsageError": "reference/command-line/",
}
"""The nearest class of an error decides."""

BY_OBJECT: Final = (
    (r"^D1", "reference/api/d1/"),
    (r"^KV", "reference/api/kv/"),
    (r"^R2", "reference/api/r2/"),
    (r"^(?:Queue|Message)", "reference/api/queue/"),
    (r"^(?:DurableObject|Sql)", "reference/api/durable-object/"),
    (r"^Bindings$", "reference/api/env/"),
    (r"^Request$", "reference/api/request/"),
    (r"^Response$", "reference/api/response/"),
    (r"^Router$", "reference/api/router/"),
    (r"^Client$", "reference/api/client/"),
)
"""Patterns of public classes, for an object that was asked for what it does not have."""

BY_FIX: Final = (
    (r"`asgi\(", "how-to/asgi/"),
    (r"\[core\] app|^Import `", "reference/checks/core-import/"),
    (r"attrs\.field\(", "reference/checks/core-handler/"),
    (r"Make a dict, a list or a str", "reference/json/"),
    (r"^A statement runs", "reference/api/d1/"),
    (r"^Remove it from there", "how-to/secrets-and-environments/"),
    (r"`timeout\(", "reference/middleware/timeout/"),
    (r"core\.middleware\.(\w+)", r"reference/middleware/\1/"),
    (r"\bauthenticated\(", "how-to/authenticate/"),
    (r"secret\.|\.dev\.vars", "how-to/secrets-and-environments/"),
    (r"`(?:req\.env\b|Env\b)|\bbindings? |Bindings are|to the Env class|class Env", "reference/api/env/"),
    (r"route's path|req\.params", "reference/checks/core-params/"),
    (r"core migrate|\b(?:statement|result|db|meta)\.|`bind\b|`await db", "reference/api/d1/"),
    (r"\bkv\.", "reference/api/kv/"),
    (r"\b(?:bucket|found)\.", "reference/api/r2/"),
    (r"\b(?:queue|batch|message)\.|app\.queue\(", "reference/api/queue/"),
    (r"\b(?:storage|cursor|namespace)\.|sql\.exec|self\.ctx|Durable Object", "reference/api/durable-object/"),
    (r"\bclient\.|`Client", "reference/api/client/"),
    (r"\bclock\.", "reference/api/clock/"),
    (r"CoreError\(|A status is", "reference/errors/"),
    (r"wait_until|req\.ctx", "reference/api/context/"),
    (r"\breq\.|The request comes first|The query is|Headers are|State is", "reference/api/request/"),
    (r"\bres\.|of `res`|yield piece|A handler is given its response", "reference/api/response/"),
    (r"\bresponse\.", "reference/api/http-response/"),
    (r"create_app|\bapp\.|Router\(", "reference/api/app/"),
)
"""Patterns of fixes: the first one that fits decides."""


def page_of(error: BaseException, fix: str | None) -> str | None:
    """The page about an error and its fix; None where neither is one of the framework's."""
    if (isinstance(error, NothingSentError) and error.unawaited) or re.search(_AWAIT, fix or ""):
        return AWAIT
    for base in type(error).__mro__:
        if base.__name__ in BY_CLASS and (base.__module__.startswith("core.") or base.__module__ == "builtins"):
            return BY_CLASS[base.__name__]
    if fix is None:
        return None
    for pattern, page in BY_FIX:
        if found := re.search(pattern, fix):
            return found.expand(page).replace("_", "-")
    if isinstance(error, AttributeError):
        given: object = error.obj
        names = [name for base in given.__class__.__mro__ for name in keys_of(base)]
        return next((page for pattern, page in BY_OBJECT if any(re.search(pattern, name) for name in names)), MISTAKES)
    return MISTAKES
