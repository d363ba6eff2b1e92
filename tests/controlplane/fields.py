"""Makes the shipped table of Kubernetes' fields from what the program ``fields`` prints.

    python -m tests.controlplane.fields            says whether the shipped table is up to date
    python -m tests.controlplane.fields --write    runs the program for each of ``VERSIONS``

Older versions are built against their own k8s.io/api in a module of their own; Go fetches it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from kubectl_gpuadmit.kube.fields.table import served
from kubectl_gpuadmit.kube.versions import version as parsed
from tests.controlplane import binaries

Json = dict[str, Any]
VERSIONS = ("1.34.12", "1.35.4", "1.36.3", binaries.PINNED)
"""Oldest first. The fields of these are told apart."""
SHIPPED = Path(__file__).parents[2] / "kubectl_gpuadmit/kube/fields/table.json"


def minor(version: str) -> str:
    return version.rpartition(".")[0]


def merged(printed: dict[str, Json]) -> Json:
    """One table of all versions: a field that not all of them have is marked with those it has."""
    names = [minor(v) for v in printed]
    tables = list(printed.values())
    kinds: Json = {}
    types: Json = {}
    for one in tables:
        kinds |= one["kinds"]
        for name, made in one["types"].items():
            if not isinstance(made, dict):
                types[name] = made
                continue
            fields = types.setdefault(name, {})
            fields |= made
    for name, made in types.items():
        if not isinstance(made, dict):
            continue
        there = [number for number, one in enumerate(tables) if name in one["types"]]
        for field, of in made.items():
            having = [n for n in there if field in tables[n]["types"][name]]
            first = "" if having[0] == there[0] else names[having[0]]
            last = "" if having[-1] == there[-1] else names[having[-1]]
            if first or last:
                made[field] = f"{of}#{first}-{last}"
    return {"kinds": kinds, "types": types}


def of_version(shipped: Json, version: str, printed: Json) -> Json:
    """The part of the shipped table that one version has, for comparison with what it prints."""
    types = {}
    for name, made in shipped["types"].items():
        if isinstance(made, dict):
            made = {
                field: of.partition("#")[0]
                for field, of in made.items()
                if "#" not in of or served(of.partition("#")[2], parsed(version))
            }
        types[name] = made
    return {
        "kinds": {k: v for k, v in shipped["kinds"].items() if k in printed["kinds"]},
        "types": {k: v for k, v in types.items() if k in printed["types"]},
    }


def pinned() -> Json:
    """What the program prints for the version that the tests ask. Raises ``binaries.Missing``."""
    return run([str(binaries.find("fields", build=False))])


def run(command: list[str], **kwargs: Any) -> Json:
    done = subprocess.run(command, capture_output=True, text=True, check=False, **kwargs)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: Json = json.loads(done.stdout)
    return found


def built_for(version: str) -> Json:
    """Builds and runs the program with the types of one version."""
    go = binaries.toolchain()
    if go is None:
        raise SystemExit("there is no Go toolchain")
    libraries = version.replace("1.", "0.", 1)
    with tempfile.TemporaryDirectory() as place:
        shutil.copy(binaries.HERE / "fields" / "main.go", place)
        needs = "".join(
            f"\tk8s.io/{name} v{libraries}\n" for name in ("api", "apimachinery", "client-go")
        )
        module = f"module fields\n\ngo 1.26\n\nrequire (\n{needs})\n"
        (Path(place) / "go.mod").write_text(module, encoding="utf-8")
        return run([go, "run", "."], cwd=place, env={**os.environ, "GOFLAGS": "-mod=mod"})


def text(table: Json) -> str:
    """One type a line, so that a change of Kubernetes shows as a change of lines."""
    lines = ["{", ' "kinds": {']
    kinds = [f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(table["kinds"].items())]
    lines += [",\n".join(kinds), " },", ' "types": {']
    types = [
        f"  {json.dumps(k)}: {json.dumps(v, separators=(',', ':'), sort_keys=True)}"
        for k, v in sorted(table["types"].items())
    ]
    return "\n".join([*lines, ",\n".join(types), " }", "}", ""])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane.fields")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    made = text(merged({version: built_for(version) for version in VERSIONS}))
    if given.write:
        SHIPPED.write_text(made, encoding="utf-8")
        return 0
    if SHIPPED.read_text(encoding="utf-8") == made:
        return 0
    print("the shipped table is not what Kubernetes' types say: run with --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
