import json
from itertools import islice

import pytest

from bench.load_http import Asked, Crowd, requests, together, wrong
from mercury_ls.link.connection import Address
from mercury_ls.web.access import Access
from tests.mercury_ls.web.listening import listening


def crowd(*clients):
    return Crowd([[Asked(10.0, status, False) for status in client] for client in clients], 1.0)


@pytest.mark.parametrize(
    ("found", "complaints"),
    [
        (crowd([200, 200], [200]), []),
        (crowd([200, 200, 200], [200]), ["2 clients: one was answered 0.33 times as often as another"]),
        (crowd([200, 503, 0]), ["1 clients: 2 answers were lost ([0, 503])"]),
    ],
)
def test_what_must_not_happen(found, complaints):
    assert list(wrong(found)) == complaints


def test_each_client_asks_about_the_same_places_in_three_dialects():
    first, again, other = (list(islice(requests(client), 6)) for client in (1, 1, 2))
    assert first == again != other
    assert [len(body) for _, body in first] == [len(body) for _, body in other]
    assert [path for path, _ in first[:3]] == ["/v1/fim/completions", "/infill", "/v1/edit/completions"]
    assert all(json.loads(body) for _, body in first)


async def test_nothing_is_lost_in_a_crowd():
    async with listening(access=Access()) as (_, port):
        found = await together(Address(host="127.0.0.1", port=port), 3, 0.3)
    assert found.all_asked
    assert found.lost == 0
