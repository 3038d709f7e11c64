"""Sources parsed in several threads at a time."""

from concurrent.futures import ThreadPoolExecutor

from mind2web2.utils.text import parsed

SOURCE = "x = " + "[" * 40 + "1" + "]" * 40 + "\n" + "def f(a):\n    return [a + 1 for b in a if b]\n" * 300


def test_sources_may_be_parsed_in_several_threads():
    """Python 3.11 raises SystemError where two threads do so at once."""
    with ThreadPoolExecutor(8) as threads:
        assert {len(tree.body) for tree in threads.map(lambda _: parsed(SOURCE), range(40))} == {301}
