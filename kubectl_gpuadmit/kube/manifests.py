"""Stand-in until the real reader lands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml
from msgspec import Struct

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.verdict import Finding


class Document(Struct):
    file: str
    index: int
    line: int
    data: dict[str, Any]
    pointer: str = ""
    text: str = ""
    offset: int = 0
    warnings: tuple[Finding, ...] = ()

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}"

    def position(self, pointer: str) -> tuple[int, int]:
        node = yaml.compose(self.text, Loader=yaml.CSafeLoader)
        at = node
        for token in (self.pointer + pointer).split("/")[1:]:
            token = token.replace("~1", "/").replace("~0", "~")
            if isinstance(node, yaml.MappingNode):
                for key, value in node.value:
                    if key.value == token:
                        at, node = key, value
                        break
                else:
                    break
            elif isinstance(node, yaml.SequenceNode) and token.isdigit() and int(token) < len(node.value):
                node = at = node.value[int(token)]
            else:
                break
        return at.start_mark.line + 1 + self.offset, at.start_mark.column + 1


def read_documents(raw: bytes, file: str) -> Iterator[Document | BadManifest]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        yield BadManifest("not-text", str(problem), file=file)
        return
    start, index = 0, 0
    parts = []
    for match in re.finditer(r"(?m)^---(?:[ \t].*)?$", text):
        parts.append((start, text[start : match.start()]))
        start = match.end()
    parts.append((start, text[start:]))
    for begin, part in parts:
        offset = text.count("\n", 0, begin)
        try:
            data = yaml.load(part, Loader=yaml.CSafeLoader)
        except (yaml.YAMLError, ValueError, RecursionError) as problem:
            mark = getattr(problem, "problem_mark", None)
            yield BadManifest(
                "bad-yaml",
                str(getattr(problem, "problem", problem)),
                file=file,
                line=(mark.line if mark else 0) + 1 + offset,
                column=mark.column + 1 if mark else 0,
            )
            continue
        if data is None:
            continue
        if not isinstance(data, dict):
            yield BadManifest("not-a-mapping", "is no mapping", file=file, line=offset + 1)
            continue
        lines = part.split("\n")
        first = next(i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("#"))
        items = data.get("items")
        if str(data.get("kind", "")).endswith("List") and isinstance(items, list):
            for at, item in enumerate(items):
                item.setdefault("kind", str(data["kind"]).removesuffix("List"))
                item.setdefault("apiVersion", data.get("apiVersion"))
                doc = Document(file, index, offset + first + 1, item, f"/items/{at}", part, offset)
                index += 1
                yield doc
        else:
            yield Document(file, index, offset + first + 1, data, "", part, offset)
            index += 1
