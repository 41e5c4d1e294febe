"""farlink's Python modules have no import cycles, not even through imports inside functions."""

from __future__ import annotations

from graphlib import CycleError, TopologicalSorter

import grimp


def test_no_python_modules_import_each_other_in_a_cycle():
    graph = grimp.build_graph("farlink", exclude_type_checking_imports=True, cache_dir=None)
    imports = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    assert len(imports) > 100

    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        cycle = " imports ".join(reversed(error.args[1]))
        raise AssertionError(f"an import cycle: {cycle}; move the shared code to a module of its own") from None
