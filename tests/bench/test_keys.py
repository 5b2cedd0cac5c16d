"""No request holds a piece of a private key, and the campaign would notice."""

from bench import keys
from bench.keys import attack


def test_requests_hold_nothing_of_keys():
    campaign = attack(range(1, 41))
    assert campaign.shown == []
    assert {*campaign.requests} == {"completion", "rewrite", "opinion", "HTTP", "HTTP, beside"}


def test_campaign_notices_what_is_not_masked(monkeypatch):
    monkeypatch.setattr("mercury_ls.code.private.mask_keys", lambda text: text)
    for name in ("masked_gap", "masked_regions"):
        monkeypatch.setattr(keys.asking, name, lambda question: question)
    campaign = attack(range(1, 9))
    assert {*campaign.leaked} == {*campaign.requests}
    assert "python -m bench.keys --layouts 1 --first 1" in campaign.shown[0]
