"""Rules for every factory of middleware: the class of `req.env` may be the first argument, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from core import create_app
from core.errors import OptionError
from core.middleware.basic_auth import basic_auth
from core.middleware.bearer_auth import bearer_auth
from core.middleware.cache import cache
from core.middleware.cors import cors
from core.middleware.csrf import csrf
from core.middleware.jwt import jwt_auth
from core.middleware.rate_limit import rate_limit
from core.middleware.request_id import request_id
from core.middleware.server_timing import server_timing
from core.middleware.sessions import sessions
from core.middleware.static import static


class Env: ...


class HasNothing(Protocol): ...


def secret(req: object) -> str:
    return "hunter2"


FACTORIES: dict[Callable[..., Any], dict[str, Any]] = {
    basic_auth: {"username": "ada", "password": secret},
    bearer_auth: {"token": secret},
    cache: {"max_age": 1},
    cors: {"origins": "*"},
    csrf: {},
    jwt_auth: {"secret": secret},
    rate_limit: {"kv_binding": "COUNTERS", "limit": 1, "window": 60},
    request_id: {},
    server_timing: {},
    sessions: {"kv_binding": "SESSIONS", "secret": secret},
    static: {"bucket": "FILES"},
}


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("env", [Env, HasNothing, Any, dict[str, str]])
def test_the_class_of_req_env_may_stand_first(factory: Callable[..., Any], env: object) -> None:
    create_app().use("/x", factory(env, **FACTORIES[factory]))


@pytest.mark.parametrize("factory", FACTORIES)
@pytest.mark.parametrize("value", ["hunter2", 5, secret])
def test_an_option_without_its_name_is_refused_and_not_shown(factory: Callable[..., Any], value: object) -> None:
    with pytest.raises(
        OptionError, match=rf"{factory.__name__}\(Env, …\)\. Write every option with its name$"
    ) as caught:
        factory(value, **FACTORIES[factory])
    assert "hunter2" not in str(caught.value)


SECRETS: dict[Callable[..., Any], str] = {basic_auth: "password", bearer_auth: "token", jwt_auth: "secret"}


@pytest.mark.parametrize("factory", SECRETS)
def test_a_secret_in_the_source_is_refused_with_the_function_to_write(factory: Callable[..., Any]) -> None:
    option = SECRETS[factory]
    given = {**FACTORIES[factory], option: "hunter2"}
    with pytest.raises(OptionError, match=rf"Write {option}=lambda req: req\.env\.[A-Z_]+$") as told:
        factory(**given)
    assert "hunter2" not in str(told.value)
