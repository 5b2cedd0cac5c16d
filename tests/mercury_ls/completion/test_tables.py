"""A row of a table is continued as the rows above it are, and only where they agree."""

from mercury_ls.completion.tables import rest_of_row


def check(drawn: str, expected: str) -> None:
    """Rows from the top to the one at whose end the cursor is."""
    *above, head = drawn.split("\n")
    assert rest_of_row(head, reversed(above)) == expected


def test_key_is_spelled_as_in_the_rows_above():
    check('S.IDLE: "idle",\nS.FULL: "full",\nS.DONE: "done",\nS.BROKEN: ', '"broken",')
    check("self.width = width\nself.height = height\nself.depth = depth\nself.colour ", "= colour")
    check(
        'IsOpen bool `json:"is_open"`\nIsNew bool `json:"is_new"`\nIsOld bool `json:"is_old"`\nIsDraft ',
        'bool `json:"is_draft"`',
    )
    check('"mail" => Kind::Mail,\n"post" => Kind::Post,\n"call" => Kind::Call,\n"letter"', " => Kind::Letter,")


def test_rows_say_how_words_are_joined():
    check('A_B: "a b"\nIN_TIME: "in time"\nTO_DO: "to do"\nBY_DAY: "by day"\nOUT_OF_DATE: ', '"out of date"')
    check('S.IDLE: "idle",\nS.FULL: "full",\nS.DONE: "done",\nS.OUT_OF_DATE: ', "")


def test_nothing_follows_from_two_rows_or_from_rows_that_differ():
    check('S.IDLE: "idle",\nS.FULL: "full",\nS.BROKEN: ', "")
    check('S.IDLE: "idle",\nS.FULL: 7,\nS.DONE: "done",\nS.BROKEN: ', "")
    check("S.IDLE: 1,\nS.FULL: 1,\nS.DONE: 1,\nS.BROKEN: ", "")
    check("width = width\nheight = height\ndepth = depth\nreturn ", "")


def test_key_has_to_be_complete():
    check('S.IDLE: "idle",\nS.FULL: "full",\nS.DONE: "done",\nS.BROK', "")
    check("put(idle, idle)\nput(full, full)\nput(done, done)\nput(", "")
