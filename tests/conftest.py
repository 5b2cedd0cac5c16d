"""What every test runs with: one thread of torch in each of the processes that run tests, Triton's interpreter where
there is no GPU, and no test that fails because the machine is busy."""

import gc
import os
import shutil

import hypothesis
import pytest
from xdist.scheduler import LoadFileScheduling

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported
if shutil.which("nvidia-smi") is None:
    os.environ["TRITON_INTERPRET"] = "1"  # read when a kernel is defined
hypothesis.settings.register_profile("tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("tests")


class Scheduling(LoadFileScheduling):
    """The tests of a file stay in one process and share what is slow to start; those of VS Code share one browser."""

    def _split_scope(self, nodeid: str) -> str:
        return "vscode" if nodeid.startswith("tests/editors/vscode/") else super()._split_scope(nodeid)


def pytest_xdist_make_scheduler(config, log):
    return Scheduling(config, log)


def pytest_collection_finish():
    """The tests stay to the end: each full collection of garbage would look at all of their objects again."""
    gc.collect()
    gc.freeze()


LARGE = {"ray", "torch", "transformers", "triton"}
"""What `make test-core` does without; a test that imports one of them is skipped where it is not installed."""


class Module(pytest.Module):
    def collect(self):
        try:
            return super().collect()
        except self.CollectError as error:
            skip_without(error.__cause__)
            raise


def pytest_pycollect_makemodule(module_path, parent):
    return Module.from_parent(parent, path=module_path)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    try:
        return (yield)
    except ModuleNotFoundError as error:
        skip_without(error)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    try:
        return (yield)
    except ModuleNotFoundError as error:
        skip_without(error)
        raise


def skip_without(error: BaseException | None) -> None:
    if isinstance(error, ModuleNotFoundError) and error.name and error.name.partition(".")[0] in LARGE:
        pytest.skip(f"{error.name} is not installed", allow_module_level=True)
