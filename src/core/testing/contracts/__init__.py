"""The promises of every implementation of a binding, as code that runs anywhere: one contract for each kind.

    from core.testing.contracts.kv import contract

    @pytest.mark.parametrize("case", contract.cases, ids=str)
    async def test_my_namespace(case):
        await case.run(MyNamespace())

The cases are plain coroutines over the binding's Protocol. They need no pytest, no sqlite3, no threads and no
sockets, so that they run inside the runtime too, against the real bindings.
"""
