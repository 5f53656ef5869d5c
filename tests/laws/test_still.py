"""The law of *still*: `errors` calls no client recovered that a card calls still failing, and none ongoing of which a
card says that it is over.

Over all captures of the repository, each client of a card is compared with its rows of `errors`: of the same API and
topic, with an error that the card names.
"""

import pytest

from tests.depth import DEEP
from tests.laws.test_fixes import CAPTURES
from wirecheck import library
from wirecheck.questions.error_rows import ANOTHER_SINCE, ONGOING, RECOVERED

OTHERWISE = "zk39-stubborn-client"
"""Its client gets one error once, and then another one to the end."""
NAMES = sorted(CAPTURES) if DEEP else sorted({*sorted(CAPTURES)[::4], OTHERWISE})


def is_about(row, one):
    same = (row.client_id, row.host, row.api) == (one.client_id, one.address, one.api)
    topics = row.topic == one.topic or not (row.topic and one.topic)
    return same and topics and row.error in one.error.split(", ")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.filterwarnings("ignore::UserWarning")  # what could not be read of a damaged capture
def test_no_card_and_no_row_of_errors_differ_in_whether_a_client_still_fails(name):
    hurt = [one for card in library.replay(CAPTURES[name]).cards for one in card.harm.clients]
    rows = library.errors(CAPTURES[name]) if hurt else ()
    pairs = [(one, row) for one in hurt for row in rows if is_about(row, one)]
    wrong = [(one, row) for one, row in pairs if row.status == (RECOVERED if one.ongoing else ONGOING)]
    assert wrong == []
    assert name != OTHERWISE or ANOTHER_SINCE in {row.status for _, row in pairs}
