"""The server does what its document says, whatever is sent: `MERCURY_LS_EXAMPLES` is how many requests of each kind."""

import os

import pytest
import schemathesis
from hypothesis import settings
from schemathesis.specs.openapi.checks import positive_data_acceptance

from mercury_ls.web.app import ENDPOINTS
from mercury_ls.web.openapi import document
from tests.mercury_ls.web.listening import beside
from tests.mercury_ls.web.serving import TOKEN

EXAMPLES = int(os.environ.get("MERCURY_LS_EXAMPLES", "5"))

schema = schemathesis.openapi.from_dict(document(ENDPOINTS))


@pytest.fixture(scope="module")
def port():
    with beside() as found:
        yield found


@schema.parametrize()
@settings(max_examples=EXAMPLES, deadline=None)
def test_answers_are_ones_that_the_document_names(case, port):
    asked = {"base_url": f"http://127.0.0.1:{port}", "headers": {"Authorization": f"Bearer {TOKEN}"}}
    answer = case.call(**asked)
    # A tool to be called that is not there, and what else no JSON schema can say.
    unanswerable = answer.status_code == 400 and answer.json()["error"]["code"] == "invalid_request"
    case.validate_response(answer, excluded_checks=[positive_data_acceptance] if unanswerable else [])
