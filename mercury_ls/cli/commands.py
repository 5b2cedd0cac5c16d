"""The commands that show something: each prints its result and returns its exit code."""

import argparse
import asyncio
import json
import sys
from pathlib import Path

import msgspec
from msgspec.structs import replace

from mercury_ls import complete as one_shot
from mercury_ls import doctor as checks
from mercury_ls import editor as pages
from mercury_ls.cli.given import (
    UsageError,
    assigned,
    chosen_file,
    failed,
    load_settings,
    log_level,
    missing_file,
    report,
    settings_in_effect,
    start_log,
)
from mercury_ls.session.stats import Stats, default_file, plain, recent
from mercury_ls.session.wiring import recording_switch, recordings
from mercury_ls.settings.load import Effective, Loaded, effective, user_file
from mercury_ls.wording import abbreviated, harmless, one_line, readable


def complete(options: argparse.Namespace) -> int:
    start_log(options)
    path, line, column = _split_place(options.place)
    try:
        reply = asyncio.run(
            one_shot.complete(path, line, column, arguments=assigned(options), user_file=chosen_file(options))
        )
    except one_shot.PlaceError as error:
        raise UsageError(str(error)) from error
    except OSError as error:
        return failed(options, error)
    report([*missing_file(options), *reply["problems"]])
    if options.json:
        print(json.dumps(reply, ensure_ascii=False))
    elif reply["items"]:
        print(harmless(reply["items"][0]["text"]))
    else:
        sys.stderr.write(f"nothing to suggest: {one_line(reply['silence'])}\n")
    return 0 if reply["items"] else 1


def editor(options: argparse.Namespace) -> int:
    names = pages.editors()
    if options.editor is None:
        print("\n".join(names))
    elif options.editor in names:
        print(pages.instructions(options.editor))
    else:
        raise UsageError(
            f"{options.editor!r} is none of {', '.join(names)}: have its LSP client start `mercury-ls --stdio`"
        )
    return 0


def _split_place(place: str) -> tuple[str, int, int]:
    path, line, column = [*place.rsplit(":", 2), "", ""][:3]
    if not (path and line.isdigit() and column.isdigit() and int(line) and int(column)):
        raise UsageError(f"{place!r} is not FILE:LINE:COL, for example src/app.py:12:5")
    return path, int(line), int(column)


def doctor(options: argparse.Namespace) -> int:
    findings = checks.examine(load_settings(options), chosen_file(options))
    print(checks.report(findings))
    return 1 if any(finding.remedy for finding in findings) else 0


def config(options: argparse.Namespace) -> int:
    loaded = load_settings(options)
    rows = [_in_effect(row, loaded) for row in effective(loaded)]
    report(loaded.problems)
    sys.stderr.flush()
    if options.json:
        print(json.dumps([{"path": r.path, "value": r.value, "origin": r.origin} for r in rows]))
    else:
        print(f"# user file: {readable(chosen_file(options) or user_file())}")
        width = max(len(row.path) for row in rows)
        for row in rows:
            value = json.dumps(row.value, ensure_ascii=False)
            print(one_line(f"{row.path:{width}}  {value:20}  {abbreviated(row.origin)}"))
    return 1 if loaded.problems else 0


def _in_effect(row: Effective, loaded: Loaded) -> Effective:
    """The value in effect: two defaults yield to something that is not a setting."""
    if row.path == "record.enabled" and not row.value and recording_switch().exists():
        return replace(row, value=True, origin="`mercury-ls record on`")
    if row.path == "log.level" and row.value != log_level(loaded):
        return replace(row, value=log_level(loaded), origin="default without log.file")
    return row


def stats(options: argparse.Namespace) -> int:
    start_log(options)
    counted = Stats(default_file())
    counted.enabled = settings_in_effect(options).record.counts
    rows = counted.rows()
    if options.days:
        rows = recent(rows, options.days, counted.today)
    if options.json:
        print(msgspec.json.encode({"days": rows}).decode())
    else:
        print(plain(rows, counted.where))
    return 0 if rows else 1


def record(options: argparse.Namespace) -> int:
    settings = settings_in_effect(options)
    switch = recording_switch()
    try:
        _turn(switch, options.switch)
    except OSError as error:
        return failed(options, f"cannot change {switch} ({error.strerror}): make its folder writable")
    on = settings.record.enabled or switch.exists()
    place = readable(recordings(settings))
    print(f"recording is {'on' if on else 'off'} for editors started from now on; recordings go to {place}")
    if options.switch == "off" and settings.record.enabled:
        print("record.enabled is true in your settings and keeps recording on: see `mercury-ls config`")
        return 1
    return 0


def _turn(switch: Path, state: str) -> None:
    if state == "on":
        switch.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        switch.touch()
    elif state == "off":
        switch.unlink(missing_ok=True)
