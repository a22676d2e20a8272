"""A chain of N processes as a graph whose every step is saved in SQLite: langgraph.py N."""
import sqlite3
import subprocess
import sys
import tempfile
from typing import TypedDict

sys.path = [place for place in sys.path if not place.endswith("peers")]  # this file has the library's name
from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402
from langgraph.graph import END, START, StateGraph  # noqa: E402


class Count(TypedDict):
    done: int


def step(state: Count) -> Count:
    subprocess.run(["/bin/true"], check=True)
    return {"done": state["done"] + 1}


steps = int(sys.argv[1])
graph = StateGraph(Count)
for number in range(steps):
    graph.add_node(f"s{number}", step)
    graph.add_edge(f"s{number - 1}" if number else START, f"s{number}")
graph.add_edge(f"s{steps - 1}", END)
with tempfile.TemporaryDirectory() as folder:
    saver = SqliteSaver(sqlite3.connect(f"{folder}/saved.db", check_same_thread=False))
    settings = {"configurable": {"thread_id": "one"}, "recursion_limit": steps + 10}
    end = graph.compile(checkpointer=saver).invoke({"done": 0}, settings, durability="sync")
assert end["done"] == steps
