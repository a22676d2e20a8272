"""A chain of N processes as tasks of a flow, with a server of its own: prefect.py N."""
import os
import subprocess
import sys
import tempfile

sys.path = [place for place in sys.path if not place.endswith("peers")]  # this file has the library's name
folder = tempfile.TemporaryDirectory()
os.environ.update(PREFECT_HOME=folder.name, PREFECT_LOGGING_LEVEL="ERROR", DO_NOT_TRACK="1")
from prefect import flow, task  # noqa: E402


@task
def step(before: int) -> int:
    subprocess.run(["/bin/true"], check=True)
    return before + 1


@flow
def chain(count: int) -> int:
    done = 0
    for _ in range(count):
        done = step(done)
    return done


assert chain(int(sys.argv[1])) == int(sys.argv[1])
