import json, pathlib
from mind2web2.verification_tree import *
from mind2web2.preconditions import *
V=pathlib.Path('/work/shared/vectors')
def mk(d):
    return VerificationNode(id=d['id'],desc='',critical=d['critical'],strategy=d['strategy'],score=d['score'],status=d['status'],children=[mk(c) for c in d['children']])
def chk(n,e):
    assert (n.id,n.status)==(e['id'],e['status']) and abs(n.score-e['score'])<1e-6
    assert len(n.children)==len(e['children'])
    for a,b in zip(n.children,e['children']): chk(a,b)
def test_tree():
    for v in json.loads((V/'tree.json').read_text())['vectors']:
        n=mk(v['input']); s0=n.compute_score(); assert abs(s0-v['expected_score'])<1e-6
        assert abs(n.aggregated_score-v['expected_score'])<1e-6; chk(n,v['expected'])
        assert n.compute_score(True)==n.aggregated_score; chk(n,v['expected'])
def test_pre():
    for v in json.loads((V/'preconditions.json').read_text())['vectors']:
        n=mk(v['tree'])
        for c in v['checks']:
            l=n.find(c['leaf']); ex=[n.find(i) for i in c['extra']]
            p=prerequisite_leaves(l,ex)
            assert sorted(x.id for x in p)==c['prerequisites']
            assert sorted(x.id for x in p if x.verdict.blocks)==sorted(c['blocking'])
            assert (blocking_leaf(l,ex) is not None)==c['skip']
