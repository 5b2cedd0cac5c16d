"""Keys are masked in every layout, whole or cut, and code that names them is not."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.harness.random_keys import LAYOUTS, laid_out, leaks, random_code, random_key, random_names
from mercury_engine.private_keys import WORDS, mask_keys, mask_random_lines, masked_lines

BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
BODY = "Zk4vQ9xT2mLpR7sWc1Yb8Hn5Jd3Gf6Ka" * 2
SHORT = "Ab3="
PIECES = [*WORDS, BEGIN, END, BODY, SHORT, "\n", "\r\n", "\\n", '"', " ", "pass", "€"]


@pytest.mark.parametrize("seed", range(20))
def test_key_leaves_no_piece_behind(seed):
    for number in range(15):
        rng = random.Random(f"{seed} {number}")
        key = laid_out(rng, random_key(rng))
        above, below = (random_code(rng, 10, random_names(rng)) for _ in range(2))
        text = above + key.text + below
        masked = mask_keys(text)
        assert not leaks(masked, key.secrets), key.layout
        assert [*map(len, masked.splitlines())] == [*map(len, text.splitlines())]


def test_random_keys_are_in_their_layouts():
    rng = random.Random(1)
    for name, layout in LAYOUTS.items():
        key = random_key(rng)
        assert leaks(layout(rng, key.lines), [key.lines[number] for number in key.body]), name


@settings(max_examples=200)
@given(
    st.lists(st.sampled_from([*WORDS, BEGIN, END, BODY, SHORT, "\n", "\r\n", "\\n", '"', " ", "pass", "€"])).map(
        "".join
    )
)
def test_masking_keys_moves_nothing(text):
    masked = mask_keys(text)
    assert len(masked) == len(text)
    assert all(new in (old, "*") for old, new in zip(text, masked, strict=True))


@pytest.mark.parametrize(
    "text",
    [
        f'BEGIN = "{BEGIN}"\nEND = "{END}"\n\n\ndef is_key(text):\n    return text.startswith(BEGIN)\n',
        f'MARKS = (\n    "{BEGIN}",\n    "-----BEGIN RSA PRIVATE KEY-----",\n)\n\n\ndef read(path):\n    return path\n',
        f'def wrapped(body):\n    return f"{BEGIN}\\n{{body}}\\n{END}\\n"\n',
        f'if "{BEGIN}" not in text:\n    raise ValueError("no key")\n',
        f"The block begins with {BEGIN} and ends with {END}.\n",
        '# A PRIVATE KEY is never logged.\nPATH = "/Private-Folder/AbstractConfigurationPropertiesFactory"\n',
        "-----BEGIN CERTIFICATE-----\n" + f"{BODY}\n" * 3 + "-----END CERTIFICATE-----\n",
        f"{BODY}\n" * 3,
    ],
)
def test_code_that_names_keys_stays_as_it_is(text):
    assert mask_keys(text) is text


def test_code_around_key_stays():
    code = "def load():\n    return read(KEY)\n"
    masked = mask_keys(f'{code}KEY = """{BEGIN}\n{BODY}\n{SHORT}\n{END}"""\n{code}')
    assert masked == f'{code}KEY = """{BEGIN}\n{"*" * 64}\n****\n{END}"""\n{code}'


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"{BODY}\n" * 3 + f"{SHORT}\n", ("*" * 64 + "\n") * 3 + "****\n"),
        ("".join(f'  "{BODY[at : at + 16]}" +\n' for at in (0, 16, 32)), ('  "' + "*" * 16 + '" +\n') * 3),
        ('import a from "src/components/SettingsDialog/AccountSettingsPanel";\n',) * 2,
        ("class AbstractSingletonProxyFactoryBeanRegistrationConfiguration(Base): ...\n",) * 2,
        ("MOST_ROWS = 3\n",) * 2,
    ],
)
def test_piece_cut_out_of_key_is_masked(text, masked):
    assert mask_random_lines(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        f"REM {BEGIN}\nREM {BODY[:20]}+{SHORT}\nREM {BEGIN}\n",
        f"// {BEGIN}\n// {SHORT}\n",
        f"{SHORT}\n{END}\n",
        f'lines.append("{SHORT}")\nlines.append("{END}")\n',
        f"{BEGIN}\n{BODY}\nx    {SHORT}\n",
        f'key = "MIIE{BODY[:8]}\n{BODY}\\n{SHORT}\\n{END}\\n"\n',
    ],
)
def test_short_rest_of_key_beside_mark_is_masked(text):
    assert not leaks(mask_keys(text), [BODY, BODY[:20], SHORT])


def test_lines_of_keys_are_told_with_what_is_shown_of_them():
    assert masked_lines(f"a = 1\n{BEGIN}\n  {BODY}\n{END}\n") == {f"  {BODY}": "  " + "*" * 64}
    assert masked_lines("a = 1\n") == {}
