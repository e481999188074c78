"""Small patterns with the fewest nodes they are known to need, read from ``probes.txt``.

Each line there is ``name | graph | nodes | options``; outputs are ``y``, ``y2``. Inputs are those of
``INPUTS`` that the graph names. ``f32(...)``, ``i64(...)`` and ``bool(...)`` are constants, ``n(4,3)``
draws one and ``u(4)`` one above 0; ``$BN`` and its like stand for what ``WORDS`` says.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

INPUTS = {
    "x": "float[N,4,6,6]",
    "z": "float[N,4,6,6]",
    "s": "float[B,S,8]",
    "s2": "float[B,S,8]",
    "m": "float[4,8]",
    "m2": "float[8,5]",
    "b": "bool[B,S,8]",
    "b2": "bool[B,S,8]",
    "i": "int64[B,S]",
    "j": "int32[B,S]",
    "q": "float[B,2,S,4]",
    "k": "float[B,2,S,4]",
    "c": "bool",
    "t": "float[2,12]",
    "one": "float[1,4,1,1]",
    "p": "float[N,8,3,5]",
    "r": "float[N,6,8,6]",
    "g": "float[N,2,4,1,5,1]",
    "a3": "float[B,S,3,5]",
}

WORDS = {
    "$BN": "f32(n(4)), f32(n(4)), f32(n(4)), f32(u(4))",
    "$W3": "f32(n(4,4,3,3))",
    "$W1": "f32(n(4,4,1,1))",
}


@dataclass(frozen=True)
class Probe:
    """One pattern."""

    name: str
    body: str
    nodes: int
    options: tuple[str, ...]


def probes() -> list[Probe]:
    """All patterns, in order."""
    found = []
    for line in Path(__file__).with_name("probes.txt").read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            name, body, nodes, *options = (cell.strip() for cell in line.split(" | "))
            for word, text in WORDS.items():
                body = body.replace(word, text)
            found.append(Probe(name, body, int(nodes), tuple(options[0].split()) if options else ()))
    return found
