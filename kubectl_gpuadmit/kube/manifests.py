"""Bytes -> manifest documents with file, line and column, or one clear error for each broken one.

Reads what ``kubectl apply -f`` reads, as kubectl reads it (apimachinery v0.37.2 pkg/util/yaml,
decoder.go): YAML documents between ``---`` lines, JSON documents in a row, Lists. It judges no
Kubernetes field: any mapping is a Document, and whether it is an object is for ``decode`` to say.

Rules of this module
1. A broken document does not stop the others, and nothing is dropped in silence: what kubectl
   passes over (the first of two equal keys, text after ``...``) is a warning.
2. Only lines that begin with ``---`` part documents. After it kubectl takes nothing but a comment.
3. A ``List``, any kind that ends so and has ``items``, and whatever holds whole objects in
   ``items`` is taken apart, also inside another. Items of a typed list (PodList) that name neither
   kind nor apiVersion get them from the list.
4. Values load at once; places are worked out when somebody asks for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from msgspec import Struct, field, structs

from kubectl_gpuadmit.errors import BadManifest
from kubectl_gpuadmit.kube import jsontext, yaml11
from kubectl_gpuadmit.kube.jsontext import JsonError
from kubectl_gpuadmit.kube.source import Source
from kubectl_gpuadmit.kube.yaml11 import Note
from kubectl_gpuadmit.kube.yaml_scalars import Place, YamlError
from kubectl_gpuadmit.verdict import Evidence, Finding

REASONS = {
    "manifest/duplicate-key": (
        "A mapping has the same key twice; kubectl keeps the last one without a word, strict "
        "decoders refuse the file. Remove one of the two."
    ),
    "manifest/merge-override": (
        "A YAML merge (<<) overrides a key above it in kubectl, while most YAML readers keep that "
        "key. Write << first in its mapping."
    ),
    "manifest/ignored-text": (
        "Text follows the end marker (...) of a YAML document; kubectl does not read it. "
        "Begin a new document with ---."
    ),
}

_SEPARATOR = re.compile(rb"^---(.*)$", re.MULTILINE)
_JSON_LINE = re.compile(r'\n\{(?=\s*")')
_WORDS = {"": "empty", str: "text", list: "a list", bool: "true or false", int: "a number"}


class Document(Struct):
    """One manifest: a mapping, and where it stands."""

    file: str
    index: int
    """Number of the document in its file, from 0; items of a List count one by one."""
    line: int
    """First line of the document's own text, from 1."""
    data: dict[str, Any]
    """As kubectl would send it: text keys, int64 and float64 numbers."""
    pointer: str = ""
    """Pointer from the top-level document to this one: '' or '/items/3'."""
    warnings: tuple[Finding, ...] = ()
    source: Source | None = field(default=None)

    @property
    def location(self) -> str:
        """``file:line``; ``file`` alone where there is no text (line 0), as of a live object."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def position(self, pointer: str) -> tuple[int, int]:
        """Line and column, from 1, of the field that an RFC 6901 pointer into ``data`` names.

        A key's place is its own first character, a list element's that of its content. For a
        field that the text does not hold (absent, or brought in by an alias) it is the nearest one
        around.
        """
        if self.source is None:
            return self.line, 1
        line, column = self.source.find(self.pointer + pointer)
        return line + 1, column + 1


class Root(Struct):
    """A top-level document as it stands in the file, Lists not yet taken apart."""

    data: dict[str, Any]
    line: int
    source: Source
    notes: tuple[Note, ...] = ()
    items: tuple[Place, ...] = ()
    """Where the items of a List begin, where that is known already."""


def read_documents(raw: bytes, file: str) -> Iterator[Document | BadManifest]:
    """Every document of a file in order; empty ones and those of comments alone are left out.

    A broken document comes as a BadManifest in its place, not raised. ``file`` is what messages
    call it. Compressed input is not unpacked here.
    """
    index = 0
    for root in read_roots(raw, file):
        if isinstance(root, BadManifest):
            yield root
            continue
        for found in documents_of(root, file):
            if isinstance(found, Document):
                found.index = index
                index += 1
            yield found


def read_roots(raw: bytes, file: str) -> Iterator[Root | BadManifest]:
    """As ``read_documents``, with Lists in one piece."""
    refused = _not_text(raw, file)
    if refused is not None:
        yield refused
        return
    raw = raw.removeprefix(b"\xef\xbb\xbf")
    if raw.lstrip()[:1] == b"{":
        yield from _json_documents(raw, file)
    else:
        yield from _yaml_documents(raw, file, (0, 0))


def is_list(data: dict[str, Any]) -> bool:
    """Whether an object holds others: kind ``List``, another that ends so and has items, or any
    whose items all name their kind and apiVersion.
    """
    kind, items = data.get("kind"), data.get("items")
    if not isinstance(kind, str):
        return False
    if kind.endswith("List"):
        return kind == "List" or ("items" in data and isinstance(items, list | None))
    return (
        isinstance(items, list)
        and bool(items)
        and all(isinstance(i, dict) and i.get("kind") and i.get("apiVersion") for i in items)
    )


def _not_text(raw: bytes, file: str) -> BadManifest | None:
    def refuse(message: str, hint: str) -> BadManifest:
        return BadManifest("not-text", message, file=file, line=1, hint=hint)

    if raw[:2] == b"\x1f\x8b" or raw[:4] in (b"\x28\xb5\x2f\xfd", b"PK\x03\x04"):
        return refuse("this is compressed data, not a manifest", "unpack it first")
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff") or (b"\0" in raw[:4] and raw[:4].strip(b"\0")):
        return refuse(
            "this is UTF-16 or UTF-32 text, which kubectl does not read document by document",
            "save it as UTF-8; in PowerShell: … | Out-File -Encoding utf8",
        )
    if b"\0" in raw:
        return refuse("this is binary data, not a manifest", "name a YAML or JSON file")
    return None


# -- YAML ------------------------------------------------------------------------------------------


def _yaml_documents(raw: bytes, file: str, place: Place) -> Iterator[Root | BadManifest]:
    """Parts a stream at its ``---`` lines; ``place`` is that of its beginning."""
    start, skip = 0, False
    line, column = place
    for mark in _SEPARATOR.finditer(raw):
        if not skip:
            yield from _yaml_document(raw[start : mark.start()], file, (line, column))
        line += raw.count(b"\n", start, mark.end())
        start, column = mark.end(), 3 + len(mark[1])
        said = mark[1].strip()
        skip = bool(said) and not said.startswith(b"#")
        if skip:
            text = said[:30].decode("utf-8", "replace")
            yield BadManifest(
                "bad-separator",
                f"kubectl takes no text after ---, and here is {text!r}",
                file=file,
                line=line + 1,
                column=4,
                hint="put the text on a line of its own; for a ruled line write # in front",
            )
    if not skip:
        yield from _yaml_document(raw[start:], file, (line, column))


def _yaml_document(raw: bytes, file: str, place: Place) -> Iterator[Root | BadManifest]:
    if not raw.strip():
        return
    if not raw.endswith(b"\n"):
        raw += b"\n"  # as kubectl's line reader does: a block scalar keeps its last line break
    source = Source(place, yaml=raw)
    try:
        loaded = yaml11.load(raw)
    except YamlError as problem:
        if all(line[:1] == b"#" or line.strip() in (b"", b"...") for line in raw.split(b"\n")):
            return  # end markers alone: nothing, for kubectl
        at = source.shift(problem.at)
        yield BadManifest(
            "bad-yaml",
            str(problem),
            file=file,
            line=at[0] + 1,
            column=at[1] + 1,
            hint=problem.hint,
        )
        return
    if loaded is None or (loaded.value is None and not loaded.notes):
        return
    line = source.shift(loaded.at)[0] + 1
    if not isinstance(loaded.value, dict):
        yield _no_mapping(loaded.value, file, line)
        return
    notes = tuple(structs.replace(note, at=source.shift(note.at)) for note in loaded.notes)
    items = tuple(source.shift(at) for at in loaded.items)
    yield Root(loaded.value, line, source, notes, items)


def _no_mapping(value: Any, file: str, line: int) -> BadManifest:
    what = _WORDS.get(type(value), "no mapping") if value is not None else "empty"
    if isinstance(value, list):
        hint = "put the objects under kind: List, items:, or part them with ---"
    elif isinstance(value, str) and ":" not in value:
        hint = "a manifest is made of lines such as kind: Pod"
    else:
        hint = "each 'key: value' needs a space after its colon"
    return BadManifest(
        "not-a-mapping", f"a manifest is a mapping, this is {what}", file=file, line=line, hint=hint
    )


# -- JSON ------------------------------------------------------------------------------------------


def _json_documents(raw: bytes, file: str) -> Iterator[Root | BadManifest]:
    """JSON documents in a row. As in kubectl, what fails as JSON is tried as YAML.

    Where both readers fail, the error is that of the JSON reader; the next line that begins with a
    brace is then tried.
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start)
        yield BadManifest("not-text", "this is not UTF-8 text", file=file, line=line + 1)
        return
    decoder = jsontext.Decoder()
    at, place, count = jsontext.skip_space(text, 0), (0, 0), 0
    place = jsontext.moved(text, 0, at, place)
    while at < len(text):
        try:
            value, end = decoder.read(text, at)
        except JsonError as problem:
            where = jsontext.moved(text, at, problem.offset, place)
            error = BadManifest(
                "bad-json",
                str(problem),
                file=file,
                line=where[0] + 1,
                column=where[1] + 1,
                hint=problem.hint,
            )
            # kubectl still takes the stream for YAML after at most one document of JSON
            if problem.syntax and count < 2:
                found = list(_yaml_documents(text[at:].encode(), file, place))
                refs = [one.ref if isinstance(one, BadManifest) else "" for one in found]
                if refs != ["bad-yaml"]:
                    yield from found
                    return
            yield error
            again = _JSON_LINE.search(text, problem.offset)
            if again is None:
                return
            place, at = (jsontext.moved(text, at, again.end() - 1, place), again.end() - 1)
            count = 2
            continue
        if not isinstance(value, dict):
            yield _no_mapping(value, file, place[0] + 1)
        else:
            source = Source(place, text=text, offset=at)
            notes = tuple(jsontext.doubles(text, at, place)) if decoder.doubled else ()
            yield Root(value, place[0] + 1, source, notes)
        count += 1
        following = jsontext.skip_space(text, end)
        place = jsontext.moved(text, at, following, place)
        at = following


# -- Lists and warnings ----------------------------------------------------------------------------


def documents_of(root: Root, file: str) -> Iterator[Document | BadManifest]:
    """The objects of a top-level document: itself, or a List's items."""
    found = list(_taken_apart(root.data, "", root.line - 1, root, root.source, file))
    outside = [
        note
        for note in root.notes
        if not any(
            isinstance(doc, Document) and _within(note.pointer, doc.pointer) for doc in found
        )
    ]
    for doc in found:
        if isinstance(doc, Document) and root.notes:
            own = [note for note in root.notes if _within(note.pointer, doc.pointer)]
            doc.warnings = tuple(
                _warning(note, doc.pointer, file) for note in sorted([*outside, *own], key=_where)
            )
            outside = []
        yield doc


def _taken_apart(
    data: dict[str, Any], pointer: str, line: int, root: Root, source: Source, file: str
) -> Iterator[Document | BadManifest]:
    if not is_list(data):
        yield Document(file, 0, line + 1, data, pointer, (), source)
        return
    items = data.get("items")
    if items is None:
        return
    if not isinstance(items, list):
        at = source.find(f"{pointer}/items")
        yield BadManifest(
            "not-a-list",
            "items is not a list",
            file=file,
            line=at[0] + 1,
            column=at[1] + 1,
            field="items",
            hint="begin each item with '- '",
        )
        return
    inherited = {}
    kind = str(data["kind"])
    if kind.endswith("List") and kind != "List":
        version = data.get("apiVersion")
        inherited = {"apiVersion": version, "kind": kind.removesuffix("List")}
    for n, (item, inner) in enumerate(zip(items, _sources(items, pointer, source), strict=True)):
        at_item = f"{pointer}/items/{n}"
        place = inner.place if inner is not source else _item_place(root, source, at_item, n)
        if not isinstance(item, dict):
            yield BadManifest(
                "not-a-mapping",
                f"an item of a List is an object, this is {_WORDS.get(type(item), 'none')}",
                file=file,
                line=place[0] + 1,
                column=place[1] + 1,
                field=f"items[{n}]",
            )
            continue
        if inherited and not item.get("kind") and not item.get("apiVersion"):
            item = {**inherited, **{k: v for k, v in item.items() if k not in inherited}}
        yield from _taken_apart(item, at_item, place[0], root, inner, file)


def _sources(items: list[Any], pointer: str, source: Source) -> Iterator[Source]:
    """Where each item's text is. JSON items are found one after another, each from the last."""
    if source.yaml is not None:
        yield from [source] * len(items)
        return
    steps = [*pointer.removeprefix(source.base).split("/")[1:], "items"]
    _, begin = jsontext.find(source.text, source.offset, steps)
    place, at = source.place, source.offset
    for n, offset in enumerate(jsontext.elements(source.text, begin)):
        place, at = jsontext.moved(source.text, at, offset, place), offset
        yield Source(place, text=source.text, offset=offset, base=f"{pointer}/items/{n}")


def _item_place(root: Root, source: Source, pointer: str, n: int) -> Place:
    if pointer.count("/") == 2 and len(root.items) > n:
        return root.items[n]
    return source.find(pointer)


def _within(pointer: str, outer: str) -> bool:
    return pointer == outer or pointer.startswith(outer + "/")


def _where(note: Note) -> Place:
    return note.at


def _warning(note: Note, outer: str, file: str) -> Finding:
    line = note.at[0] + 1
    match note.what:
        case "duplicate-key":
            detail = f"key {note.key} is written twice in one mapping; kubectl keeps the last"
        case "merge-override":
            detail = f"<< overrides the key {note.key} above it, but not in most other YAML readers"
        case _:
            detail = "the text after the end marker ... is not read by kubectl"
    return Finding(
        reason=f"manifest/{note.what}",
        detail=detail,
        evidence=(Evidence(f"{file}:{line}", note.key or "text", "again", "once"),)
        if note.what == "duplicate-key"
        else (Evidence(f"{file}:{line}", note.key or "text", "present", "absent"),),
        field=note.pointer.removeprefix(outer) if _within(note.pointer, outer) else "",
        rule="manifest",
        level="warn",
    )
