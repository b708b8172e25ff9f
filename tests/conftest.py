"""Every test runs with the shapes in the package's signatures checked on each call."""

import os

import jaxtyping
import pytest
import torch
from hypothesis import settings

# Before the package is imported for the first time. A compiler traces through functions and would trace the checks
# too, so the tests that compile run in processes of their own, without the hook.
if "CAPSROUTE_NO_SHAPE_CHECKS" not in os.environ:
    jaxtyping.install_import_hook("capsroute", "shape_checks.check")

torch.set_num_threads(1)  # two workers share the machine; its threads would spin against each other

settings.register_profile("capsroute", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("capsroute")


@pytest.fixture(autouse=True)
def _same_start():
    torch.manual_seed(0)


@pytest.fixture
def no_shape_checks():
    """For calls with wrong shapes: what a user sees, who has no run-time checks of signatures."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)
