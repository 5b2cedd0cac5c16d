"""Settings from every source, and what is said about those that cannot be applied."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st

from mercury_ls.settings import load as config
from mercury_ls.settings.load import Loaded, load
from mercury_ls.settings.schema import Settings, settings

ROOT = Path(__file__).parents[3]


@pytest.fixture
def write(tmp_path):
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    return write


def value(loaded: Loaded, path: str):
    return {row.path: row.value for row in config.effective(loaded)}[path]


def check(loaded: Loaded, problems: list[str], **values):
    """`problems` are `path: words of the remedy`; `values` have `__` for the dot."""
    told = [f"{problem.path}: {problem.remedy}" for problem in loaded.problems]
    assert len(told) == len(problems), told
    for expected, said in zip(problems, told, strict=True):
        path, _, words = expected.partition(": ")
        assert said.startswith(f"{path}: ")
        assert words in said
    for name, expected in values.items():
        assert value(loaded, name.replace("__", ".")) == expected


def test_without_sources_all_is_default():
    assert load().settings == Settings()
    assert {row.origin for row in config.effective(load())} == {"default"}


def test_later_sources_win(write):
    user = write("config.toml", "[engine]\nmodel='stand-in'\nthreads=1\ndevice='cpu'\neffort='high'\nmemory_mb=512")
    project = write(".mercury.toml", "[engine]\neffort='medium'")
    options = {"engine": {"model": "stand-in", "threads": 3, "device": "auto"}}
    environ = {"MERCURY_ENGINE_MODEL": "auto", "MERCURY_ENGINE_THREADS": "4"}
    loaded = load(user, [project], options, environ, {"engine.model": "fake"})
    check(loaded, [], engine__model="fake", engine__threads=4, engine__device="auto", engine__effort="medium")
    assert loaded.settings.engine.memory_mb == 512
    assert loaded.origins == {
        "engine.model": "command line",
        "engine.threads": "environment MERCURY_ENGINE_THREADS",
        "engine.device": "editor settings",
        "engine.effort": f"project file {project}",
        "engine.memory_mb": f"user file {user}",
    }


def test_nearest_project_file_wins(write, tmp_path):
    write(".mercury.toml", "[engine]\neffort='high'")
    inner = write("inner/.mercury.toml", "[engine]\neffort='medium'")
    files = config.project_files([inner.parent, tmp_path, tmp_path / "none"])
    assert files == [tmp_path / ".mercury.toml", inner]
    check(load(project_files=files), [], engine__effort="medium")


def test_unknown_names_are_reported_with_what_was_meant(write):
    unknown = "[sugest]\ndelay_ms=1\n[nothing]\nlike_it=1\n[suggest]\nnope=1"
    user = write("config.toml", f"[engine]\nmodle='x'\nthreads=2\n{unknown}")
    check(
        load(user),
        [
            "engine.modle: did you mean engine.model?",
            "sugest.delay_ms: suggest.delay_ms?",
            "nothing.like_it: SETTINGS.md",
            "suggest.nope: SETTINGS.md",
        ],
        engine__threads=2,
    )
    check(load(options={"engin": 1, "privacy": 2}), ["engin: did you mean engine?", "privacy: is a group"])


@pytest.mark.parametrize(
    ("path", "bad", "remedy"),
    [
        ("engine.threads", -1, "a whole number from 0 to 256"),
        ("engine.threads", True, "a whole number"),
        ("engine.threads", "2", "a whole number"),
        ("engine.effort", "hihg", "one of instant, low, medium, high; did you mean high?"),
        ("suggest.minimum_probability", 1.5, "a number from -1.0 to 1.0"),
        ("suggest.minimum_probability", float("nan"), "a number"),
        ("suggest.enabled", 1, "true or false"),
        ("suggest.languages.python", "no", 'true, false or "request"'),
        ("suggest.languages", [], "a table"),
        ("privacy.ignore", "*.sql", "a list of strings"),
        ("privacy.ignore", [1], "a list of strings"),
        ("engine.model", 3, "a string"),
        ("log.file", "server.log", "an absolute path"),
        ("engine.address", "localhost:8391", "http://127.0.0.1:8391"),
        ("engine.address", "http://[::1", "http://127.0.0.1:8391"),
        ("engine.address", "ftp://localhost", "http://127.0.0.1:8391"),
    ],
)
def test_bad_values_are_reported_and_the_rest_applies(path, bad, remedy):
    loaded = load(options={path: bad, "engine.memory_mb": 300})
    check(loaded, [f"{path}: {remedy}"], engine__memory_mb=300)
    assert loaded.problems[0].origin == "editor settings"
    assert loaded.problems[0].value == repr(bad)
    assert str(loaded.problems[0]).startswith(f"editor settings: {path} = {bad!r}: must be ")


def test_editors_may_wrap_dot_and_hump_their_settings():
    for options in (
        {"suggest": {"delay_ms": 7}},
        {"mercury": {"suggest": {"delayMs": 7}}, "python": {"path": "x"}},
        {"mercury.suggest.delayMs": 7, "editor.tabSize": 2},
        {"suggest.delayMs": 7, "editorInfo": {"name": "nvim"}, "telemetry": None},
        {"suggest": {"delayMs": 1}, "mercury": {"suggest": {"delayMs": 7}}},
        {"suggest": {"delayMs": 7, "adapt": None}, "mercury": {}},
    ):
        check(load(options=options), [], suggest__delay_ms=7, suggest__adapt=True)
    check(load(options=["what"]), ["settings: must be a table"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("sugest", "is not a setting; did you mean suggest?"),
        ("sugest.x", "is not a setting; did you mean suggest?"),
        ("sugest.languages.go", "is not a setting; did you mean suggest.languages?"),
        ("sugest.enabeld", "is not a setting; did you mean suggest.enabled?"),
        ("suggest.enabeld", "is not a setting; did you mean suggest.enabled?"),
        ("suggest.min_probability", "is not a setting; did you mean suggest.minimum_probability?"),
        ("suggest.model", "is not a setting; did you mean engine.model?"),
        ("suggest.x", "is not a setting; see docs/SETTINGS.md"),
        ("unheard.model", "is not a setting; did you mean engine.model?"),
        ("model", "is not a setting; did you mean engine.model?"),
        ("unheard", "is not a setting; see docs/SETTINGS.md"),
        ("suggest", "is a group; set one of the settings in it, see docs/SETTINGS.md"),
    ],
)
def test_unknown_setting_is_corrected_table_first(path, words):
    check(load(arguments={path: "1"}), [f"{path}: {words}"])


def test_environment_values_are_texts():
    environ = {
        "MERCURY_SUGGEST_ADAPT": "false",
        "MERCURY_SUGGEST_MINIMUM_PROBABILITY": "0.5",
        "MERCURY_SUGGEST_LANGUAGES": "markdown=false, python=true, go=perhaps",
        "MERCURY_PRIVACY_IGNORE": "*.sql, /notes/",
        "MERCURY_ENGINE_MODEL": "",
        "MERCURY_AI_TOKEN": "of another program",
        "MERCURY_ENGINE_SPEED": "9",
        "MERCURY_SUGEST_DELAY_MS": "9",
    }
    loaded = load(environ=environ)
    problems = [
        "engine.speed: is not a setting",
        "sugest.delay_ms: suggest.delay_ms?",
        'suggest.languages.go: true, false or "request"',
    ]
    check(
        loaded,
        problems,
        suggest__adapt=False,
        suggest__minimum_probability=0.5,
        suggest__languages__markdown=False,
        suggest__languages__python=True,
        privacy__ignore=("*.sql", "/notes/"),
        engine__model="auto",
    )


def test_star_stands_for_languages_not_named():
    suggest = load(options={"suggest": {"languages": {"*": False, "go": True, "sql": "request"}}}).settings.suggest
    assert (suggest.suggests_in("go"), suggest.suggests_in("c")) == (True, False)
    assert load().settings.suggest.suggests_in("c")


def test_tables_merge_and_patterns_add_up(write):
    user = write("config.toml", "[suggest.languages]\nc=false\ngo=false\n[privacy]\nignore=['a','b']")
    project = write(".mercury.toml", "[suggest.languages]\ngo=true\n[privacy]\nignore=['b','c']")
    loaded = load(user, [project], {"privacy": {"ignore": ["d"]}})
    check(
        loaded,
        [],
        privacy__ignore=("a", "b", "c", "d"),
        suggest__languages__go=True,
        suggest__languages__c=False,
    )
    assert loaded.origins["privacy.ignore"] == f"user file {user}, project file {project}, editor settings"


SPECIAL = {
    "engine.address": "'http://127.0.0.1:1'",
    "engine.device": "'gpu'",
    "engine.memory_mb": "512",
    "engine.model": "'fake'",
    "suggest.ahead": "'on'",
}


@pytest.mark.parametrize("path", [path for path, setting in settings().items() if setting.personal])
def test_project_file_cannot_set_personal_settings(write, path):
    wanted = SPECIAL.get(path) or {"bool": "false", "int": "9", "str": "'/tmp/x'"}[settings()[path].kind.__name__]
    project = write(".mercury.toml", f"{path} = {wanted}\nengine.effort = 'high'")
    check(load(project_files=[project]), [f"{path}: is not allowed in a project file"], engine__effort="high")
    assert value(load(project_files=[project]), path) == settings()[path].default


def test_privacy_and_shared_settings_are_personal():
    personal = {path for path, setting in settings().items() if setting.personal}
    assert personal >= {
        "engine.address",
        "engine.device",
        "engine.idle_exit_minutes",
        "engine.memory_mb",
        "engine.model",
        "engine.threads",
        "engine.token_file",
        "privacy.respect_ignore_files",
        "privacy.allow_network",
        "record.enabled",
        "record.directory",
        "log.file",
    }


def test_project_file_hides_more_but_takes_nothing_back(write):
    user = write("config.toml", "[privacy]\nignore=['*.sql']")
    project = write(".mercury.toml", "[privacy]\nignore=['!*.sql','x']\nsecret_patterns=['!.env','y']")
    problems = ["privacy.ignore: cannot exempt files", "privacy.secret_patterns: cannot exempt files"]
    check(load(user, [project]), problems, privacy__ignore=("*.sql", "x"), privacy__secret_patterns=("y",))
    check(load(options={"privacy": {"secretPatterns": ["!.env"]}}), [], privacy__secret_patterns=("!.env",))


@pytest.mark.parametrize("address", ["http://10.0.0.1:1", "https://example.com", "http://127.0.0.1@example.com"])
def test_engine_elsewhere_needs_permission(address):
    check(load(options={"engine": {"address": address}}), ["engine.address: allow_network"], engine__address="")


def test_engine_elsewhere_needs_encryption():
    privacy = {"allow_network": True}
    insecure = {"engine": {"address": "http://example.com"}, "privacy": privacy}
    check(load(options=insecure), ["engine.address: use https"], engine__address="")
    secure = {"engine": {"address": "https://example.com"}, "privacy": privacy}
    check(load(options=secure), [], engine__address="https://example.com")


@pytest.mark.parametrize("address", ["http://localhost:1", "http://127.0.0.1:8391", "https://[::1]:8"])
def test_engine_here_needs_no_permission(address):
    check(load(options={"engine": {"address": address}}), [], engine__address=address)


def test_malformed_toml_file_is_named_with_its_line(write):
    user = write("config.toml", "[engine]\nthreads = 2\nmodel = \n")
    loaded = load(user, options={"engine": {"threads": 3}})
    check(loaded, [f"{user}:3: is not valid TOML"], engine__threads=3, engine__model="auto")
    assert str(loaded.problems[0]).startswith(f"user file: {user}:3: is not valid TOML")


def test_files_that_cannot_be_read_are_named(write, tmp_path):
    text = tmp_path / "latin.toml"
    text.write_bytes(b"[log]\nfile = '\xe9'")
    check(load(text), [f"{text}: is not UTF-8 at byte 14"])
    check(load(tmp_path), [f"{tmp_path}: cannot be read"])
    check(load(write("large.toml", "#" * 300_000)), [f"{tmp_path / 'large.toml'}: larger than"])
    check(load(tmp_path / "missing.toml"), [])


SECRET = "cio0123456789abcdefTOKEN"
CREDENTIALS = f"[registry]\ntoken = '{SECRET}'\n[suggest]\nkey = '{SECRET}'\n"


@pytest.mark.parametrize("text", [CREDENTIALS, f"token = {SECRET}", "suggest.enabled = false"])
def test_project_file_that_leads_out_of_its_project_is_not_read(write, tmp_path, text):
    secret = write("home/.cargo/credentials.toml", text)
    project, folder = tmp_path / "project" / config.PROJECT_FILE, tmp_path / "linked"
    project.parent.mkdir()
    folder.symlink_to(project.parent)
    for target in (secret, Path("../home/.cargo/credentials.toml")):
        project.symlink_to(target)
        for file in (project, folder / config.PROJECT_FILE):
            loaded = load(project_files=[file])
            check(loaded, [f"{file}: is a link that leads out of the project"], suggest__enabled=True)
            assert SECRET not in repr(loaded)
        project.unlink()


def test_project_file_may_be_a_link_within_its_project(write, tmp_path):
    write("project/settings/mercury.toml", "suggest.enabled = false")
    folder, project = tmp_path / "linked", tmp_path / "project" / config.PROJECT_FILE
    project.symlink_to("settings/mercury.toml")
    folder.symlink_to(project.parent)
    for file in (project, folder / config.PROJECT_FILE):
        check(load(project_files=[file]), [], suggest__enabled=False)


def test_values_of_unknown_settings_are_not_repeated(write):
    user = write("config.toml", CREDENTIALS)
    for loaded in (load(user), load(options={"registry": {"token": SECRET}})):
        assert "registry.token: is not a setting" in str(loaded.problems[0])
        assert SECRET not in repr(loaded)


FIX = "[Fix](command:workbench.action.terminal.new)"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f'"{FIX}" = 1', "line 1: is not a setting"),
        (f'[suggest]\nenabled = true\n\n"{FIX}" = """a\n"""', "line 4: is not a setting"),
        (f'# [x]\n["{FIX}"]\nx = {{ y = 1 }}', "line 3: is not a setting"),
        (f'[["{FIX}"]]\nx = 1\n[["{FIX}"]]', "line 1: is not a setting"),
        (f'[suggest]\nlanguages."{FIX}" = 1', "suggest.languages in line 2: must be true"),
        (f'"{FIX}" = 1\n"{FIX}" = 2', "{file}: is not valid TOML (Cannot overwrite a value"),
        ("[suggest]\nenabeld = 1", "line 2: is not a setting; did you mean suggest.enabled?"),
        ("\ufeff\r\nengine.speed = 1\r\n", "line 2: is not a setting"),
    ],
)
def test_names_that_a_project_made_up_are_told_by_their_line(write, text, told):
    file = write(".mercury.toml", text)
    loaded = load(project_files=[file])
    check(loaded, [told.format(file=file)])
    assert FIX not in repr(loaded)


BOMBS = {
    "brackets": "x = " + "[" * 3000 + "]" * 3000,
    "tables": "x = " + "{a = " * 900 + "1" + "}" * 900,
    "headers": "".join(f"[{'.'.join('a' * depth)}]\n" for depth in range(1, 400)),
    "a long key": ".".join("a" * 5000) + " = 1",
    "a long quoted key": " . ".join(['"a"', "'b'"] * 20_000) + " = 1",
    "brackets behind odd quotes": 'x = [""""""", ' + "[" * 3000,
    "brackets behind a comment": "x = [ # ]]]\n" + "[" * 3000,
}
LARGE = {
    "a long number": "x = " + "9" * 5000,
    "a long hexadecimal number": "engine.deadline_ms = 0x" + "f" * 5000,
    "numbers in a list": "engine.deadline_ms = [0x" + "f" * 5000 + "]",
    "unended text": 'x = "' + '\\"' * 100_000,
    "unended quotes": 'x = """' + '\\"""' * 50_000,
    "many names": "".join(f"a{n} = 1\n" for n in range(20_000)),
    "a long name": "a" * 200_000 + " = 1",
    "many patterns": "[privacy]\nignore = [" + '"!a",' * 50_000 + "]",
    "many other patterns": "[privacy]\nignore = [" + ",".join(f'"!{n}"' for n in range(25_000)) + "]",
    "a date": "suggest.delay_ms = 2024-02-31",
    "a control character": "suggest.delay_ms = '\0'",
    "a folder's name": "record.directory = '\\u0000'",
}


@pytest.mark.parametrize("name", [*BOMBS, *LARGE])
def test_whatever_a_project_file_holds_is_reported_and_the_rest_applies(write, name):
    project = write(".mercury.toml", "suggest.enabled = false\n" + {**BOMBS, **LARGE}[name])
    outer = write("config.toml", "[suggest]\nalternatives = 2")
    loaded = load(outer, [project], {"suggest": {"inComments": False}})
    assert 1 <= len(loaded.problems) <= 17
    assert all(str(project) in str(problem) and len(str(problem)) < 600 for problem in loaded.problems)
    assert (loaded.settings.suggest.alternatives, loaded.settings.suggest.in_comments) == (2, False)
    if name in BOMBS:
        assert "nested more than 32 levels deep" in loaded.problems[0].remedy


def test_project_file_with_many_mistakes_reports_the_first(write):
    project = write(".mercury.toml", "".join(f"a{n} = 1\n" for n in range(40)) + "suggest.alternatives = 2")
    loaded = load(project_files=[project])
    assert loaded.settings.suggest.alternatives == 2
    assert [problem.path for problem in loaded.problems] == [*(f"line {n}" for n in range(1, 17)), "…"]
    assert "24 more values" in loaded.problems[-1].remedy


def test_forbidden_value_in_project_file_is_not_even_looked_at(write, monkeypatch):
    monkeypatch.setattr("mercury_engine.model_folders.resolve", pytest.fail)
    project = write(".mercury.toml", "[engine]\nmodel = '//elsewhere/share'")
    check(load(project_files=[project]), ["engine.model: is not allowed in a project file"])


def test_marks_within_texts_and_comments_do_not_nest(write):
    marks = "[{." * 40
    text = f'x = "{marks}" # {marks}\ny = \'{marks}\'\nz = """\\"{marks}\n{marks}"""\nw = \'\'\'{marks}\'\'\'\n'
    assert [problem.path for problem in load(write("config.toml", text)).problems] == ["x", "y", "z", "w"]


KEYS = st.sampled_from(["a", "b", '"[x"', "'c.d'", '""'])
VALUES = st.sampled_from(["1", '"""\n[a]\n"""', "[\n1, # ]\n]", "{ a = 1 }", "'#'", "2024-01-01"])
STATEMENTS = st.one_of(
    st.builds("{} = {}".format, KEYS, VALUES),
    st.builds("{}.{} = {}".format, KEYS, KEYS, VALUES),
    st.builds("[{}.{}]".format, KEYS, KEYS),
    st.builds("[[{}]]".format, KEYS),
    st.sampled_from(["", "# [ {"]),
)


@examples(max_examples=200)
@given(st.lists(STATEMENTS, max_size=12))
def test_values_in_a_project_file_have_their_lines(tmp_path_factory, statements):
    project = tmp_path_factory.mktemp("project") / ".mercury.toml"
    project.write_text("\n".join(statements), encoding="utf-8")
    sets = [statement.startswith("[[") or " = " in statement for statement in statements]
    first = 1 + sum(statement.count("\n") + 1 for statement in statements[: sets.index(True) if any(sets) else 0])
    problems = load(project_files=[project]).problems
    lines = [int(problem.path.removeprefix("line ")) for problem in problems if "TOML" not in problem.remedy]
    assert min(lines, default=first) == first


WORDS = '[ ] [[ { } = . , " \' """ \\ # \0 é true 1e999 nan 2024-01-01 12:00:00 engine suggest languages ignore'
PARTS = st.sampled_from(
    [
        *map(str.encode, WORDS.split(" ")),
        *(b"\n", b" ", b"\xff", b"9" * 4301, b"0x" + b"f" * 9999),
        *(b"[suggest]\nlanguages.x = ", b"engine.threads = "),
    ]
)


@examples(max_examples=200)
@given(st.binary(max_size=64) | st.lists(PARTS, max_size=40).map(b"".join))
def test_bytes_never_break_loading(tmp_path_factory, content):
    """A file is read or told of: an empty list of problems is one whose every value applies."""
    project = tmp_path_factory.mktemp("project") / ".mercury.toml"
    project.write_bytes(content)
    loaded = load(project, [project], {"suggest": {"alternatives": 2}})
    assert loaded.settings.suggest.alternatives == 2
    assert all(str(problem).startswith(("user file", "project file")) for problem in loaded.problems)


def test_byte_order_mark_is_no_error(write):
    check(load(write("config.toml", "\ufeff[engine]\nthreads = 2")), [], engine__threads=2)


def test_home_and_the_current_folder(write, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").mkdir()
    user = write("config.toml", "[engine]\nmodel='~/model'\n[log]\nfile='~/a.log'")
    check(load(user), [], log__file=str(tmp_path / "a.log"), engine__model=str(tmp_path / "model"))
    check(load(user, arguments={"log": {"file": "b.log"}}), [], log__file=str(tmp_path / "b.log"))


@pytest.mark.parametrize("model", ["/nope", "nope", "./nope", "~/nope"])
def test_missing_model_takes_engine_from_nobody(model):
    loaded = load(options={"engine": {"model": model, "effort": "high"}})
    check(loaded, ["engine.model: neither an installed model (auto, stand-in) nor"], engine__effort="high")
    assert loaded.settings.engine.model == "auto"


def test_user_file_is_our_toml_file():
    assert config.user_file().parts[-2:] == ("mercury-ls", "config.toml")


def deep(count: int):
    value = 1
    for _ in range(count):
        value = {"a": value}
    return value


def test_editor_may_nest_as_deep_as_it_likes():
    options = {"engine": deep(5000), "mercury": {"suggest": {"languages": deep(5000), "alternatives": [[deep(5000)]]}}}
    assert len(load(options={**options, "suggest": {"delayMs": 10**5000}}).problems) == 4


LEAVES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.lists(st.text(max_size=3)),
    lambda inner: st.dictionaries(st.sampled_from(["engine", "suggest", "languages", "model", "x", ""]), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["engine", "privacy", "suggest", "mercury", "engine.model"]), LEAVES))
def test_editor_settings_never_break_loading(options):
    loaded = load(options=options)
    assert msgspec.convert(msgspec.to_builtins(loaded.settings), Settings) == loaded.settings
