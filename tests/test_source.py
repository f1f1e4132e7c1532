"""The shape of the sources: no two modules import each other."""

from __future__ import annotations

import grimp


def test_no_modules_import_each_other() -> None:
    """An import under TYPE_CHECKING or inside a function counts; move what both need below both."""
    graph = grimp.build_graph("core", cache_dir=None)
    ways = [
        (module, graph.find_shortest_chain(importer=imported, imported=module))
        for module in sorted(graph.modules)
        for imported in sorted(graph.find_modules_directly_imported_by(module))
    ]
    assert [" -> ".join([module, *back]) for module, back in ways if back] == []
