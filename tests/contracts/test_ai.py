"""Every Ai keeps the contract: one that speaks to a server, and the fake."""

from __future__ import annotations

import pytest
from tests.contracts.ai import BROKEN, ECHO, EMBED, contract, says
from tests.contracts.contract import Case
from tests.support.openai_server import openai_server

from core.backends.embedded.ai import AiServer, EmbeddedAi
from core.bindings.ai import Ai
from core.testing.ai import FakeAi


@pytest.mark.parametrize("case", contract.cases, ids=str)
async def test_an_ai_over_a_server_keeps_its_contract(case: Case[Ai]) -> None:
    async with openai_server() as server:
        await case.run(EmbeddedAi(AiServer(server.url)))


@pytest.mark.parametrize("case", contract.cases, ids=str)
async def test_a_fake_ai_keeps_its_contract(case: Case[Ai]) -> None:
    await case.run(FakeAi({ECHO: says, EMBED: says, BROKEN: says}))
