"""The mesh that the client tests ask: the one at SANGAM_URL, or one started here, in one process and in several."""

import os

import httpx
import openai
import pytest

from mesh import START_LIMIT_S, Mesh, wait_until

CALL_SECONDS = 60
KINDS = {"one process": (), "processes": ("--processes",)}


def all_models_run(url):
    """Readiness asks for one model; these tests use most of them."""
    return all(model["status"] == "ready" for model in httpx.get(f"{url}/v1/models").json()["data"])


def pytest_generate_tests(metafunc):
    if "url" in metafunc.fixturenames:
        kinds = ["given"] if os.environ.get("SANGAM_URL") else list(KINDS)
        metafunc.parametrize("url", kinds, indirect=True, scope="session")


@pytest.fixture(scope="session")
def url(request):
    if request.param == "given":
        yield os.environ["SANGAM_URL"].rstrip("/")
        return
    with Mesh(*KINDS[request.param]) as mesh:
        wait_until(lambda: all_models_run(mesh.url), START_LIMIT_S, "every model has a worker")
        yield mesh.url


@pytest.fixture(scope="session")
def client(url):
    return openai.OpenAI(base_url=f"{url}/v1", api_key="none", timeout=CALL_SECONDS, max_retries=0)


@pytest.fixture(scope="session")
def http(url):
    with httpx.Client(base_url=url, timeout=CALL_SECONDS) as plain:
        yield plain
