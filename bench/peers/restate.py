"""A chain of trivial processes on Restate: starts a server and a service on loopback, and ends both."""

import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
INSTALLED = HERE.parent.parent / ".cache" / "peers" / "restate"
SERVER = INSTALLED / "node_modules" / "@restatedev" / "restate-server-linux-x64" / "bin" / "restate-server"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(url, body=None, timeout=10):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data=data, headers={"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return answer.read()


def until_it_answers(url, body=None):
    until = time.monotonic() + 60
    while True:
        try:
            return ask(url, body)
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


def main():
    node, admin, ingress, service = (free_port() for _ in range(4))
    with tempfile.TemporaryDirectory(dir=HERE.parent.parent / "target") as folder:
        settings = pathlib.Path(folder) / "restate.toml"
        settings.write_text(
            f'base-dir = "{folder}/data"\nnode-name = "n1"\ncluster-name = "bench"\nauto-provision = true\n'
            f'default-num-partitions = 4\nbind-address = "127.0.0.1:{node}"\n'
            f'advertised-address = "http://127.0.0.1:{node}/"\n'
            f'[admin]\nbind-address = "127.0.0.1:{admin}"\n[ingress]\nbind-address = "127.0.0.1:{ingress}"\n'
        )
        environment = dict(os.environ, RESTATE_DISABLE_TELEMETRY="true", RUST_LOG="warn", RESTATE_LOGGING="ERROR")
        quiet = dict(env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        started = [
            subprocess.Popen([str(SERVER), "--config-file", str(settings)], **quiet),
            subprocess.Popen(["node", str(HERE / "restate.mjs"), str(INSTALLED), str(service)], **quiet),
        ]
        try:
            until_it_answers(f"http://127.0.0.1:{admin}/health")
            place = {"uri": f"http://127.0.0.1:{service}", "force": True}
            until_it_answers(f"http://127.0.0.1:{admin}/deployments", place)
            until_it_answers(f"http://127.0.0.1:{ingress}/restate/health")
            begin = time.monotonic()
            ask(f"http://127.0.0.1:{ingress}/chain/run", int(sys.argv[1]), timeout=600)
            print(time.monotonic() - begin)
        finally:
            for process in started:
                process.kill()
                process.wait()


main()
