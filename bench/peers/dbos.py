"""A chain of N processes as steps of a durable workflow in SQLite: dbos.py N."""
import subprocess
import sys
import tempfile

sys.path = [place for place in sys.path if not place.endswith("peers")]  # this file has the library's name
from dbos import DBOS  # noqa: E402

steps = int(sys.argv[1])
folder = tempfile.TemporaryDirectory()
DBOS(config={"name": "bench", "system_database_url": f"sqlite:///{folder.name}/dbos.db", "log_level": "ERROR"})


@DBOS.step()
def step() -> int:
    return subprocess.run(["/bin/true"], check=True).returncode


@DBOS.workflow()
def chain(count: int) -> int:
    return sum(1 for _ in range(count) if step() == 0)


DBOS.launch()
assert chain(steps) == steps
DBOS.destroy()
