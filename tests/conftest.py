"""What every test runs with: one thread of torch in each of the processes that run tests, and no test that fails
because the machine is busy."""

import os

import hypothesis

os.environ.setdefault("OMP_NUM_THREADS", "1")  # read when torch is imported
hypothesis.settings.register_profile("tests", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("tests")
