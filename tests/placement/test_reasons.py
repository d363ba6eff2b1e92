"""Every reason code of the package is catalogued, once, by a module that yields it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from pathlib import Path

import kubectl_gpuadmit.placement as package

MODULES = [
    importlib.import_module(m.name)
    for m in pkgutil.walk_packages(package.__path__, "kubectl_gpuadmit.placement.")
]
CODE = re.compile(r'"(placement/[a-z-]+)"')


def test_codes_in_the_source_are_catalogued_and_none_is_left_over() -> None:
    catalogued = [code for m in MODULES for code in getattr(m, "REASONS", {})]
    written = {
        code
        for m in MODULES
        for code in CODE.findall(Path(m.__file__ or "").read_text(encoding="utf-8"))
    }
    assert sorted(catalogued) == sorted(set(catalogued))
    assert set(catalogued) == written


def test_each_meaning_is_a_sentence_and_says_what_to_do() -> None:
    for module in MODULES:
        for code, text in getattr(module, "REASONS", {}).items():
            assert re.match(r"^.+\. [A-Z].+\.$", text), code
