import re

from costcalc.calculators.rules import RULES


def test_every_rule_has_its_paper():
    papers = {rule.name: re.findall(r"arXiv (\d{4}\.\d{5})", rule.source) for rule in RULES}
    assert papers == {
        "6nd_total": ["2001.08361"],
        "6nd_active": ["2001.08361", "2101.03961"],
        "6nd_non_embedding": ["2001.08361"],
        "kaplan": ["2001.08361"],
        "palm": ["2204.02311"],
        "megatron": ["2104.04473"],
        "megatron_full_recompute": ["2104.04473"],
        "chinchilla": ["2203.15556"],
        "rule_of_thumb": [],
    }
