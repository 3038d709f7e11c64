"""The labelled set on changed pages."""

from collections import Counter

from mind2web2.judge_check.labelled_set import shipped_set
from mind2web2.plugins.probe.changed_set import changed_set
from mind2web2.plugins.probe.edits import CHANGES, CONTROLS


def test_true_claims_get_a_changed_page_and_a_control():
    shipped = shipped_set()
    # The long pages add time and no other kind of case.
    short = shipped._replace(
        claims=tuple(
            claim
            for claim in shipped.claims
            if all(len(shipped.pages[url].text) < 20_000 for url in claim.urls)
        )
    )
    found = changed_set(short)
    counts = Counter(case.category for case in found.claims)
    assert set(counts) == {*CHANGES, *CONTROLS}
    assert all(case.right is (case.category in CONTROLS) for case in found.claims)
    assert sum(counts[kind] for kind in CHANGES) > 80
    originals = {
        case.question: shipped.pages[case.urls[0]].text for case in short.claims if case.urls
    }
    for case in found.claims:
        assert found.pages[case.urls[0]].text != originals[case.question]
    # The address must not tell the judge which cases are controls.
    assert not any(kind in case.urls[0] for case in found.claims for kind in ("control", "change"))
