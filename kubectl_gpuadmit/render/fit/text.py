"""What ``fit`` says to a person; estimates nothing itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kubectl_gpuadmit.sizing.advice import Alternative, Configuration, Line, shortest
from kubectl_gpuadmit.sizing.constants import GIB
from kubectl_gpuadmit.sizing.envelope import Envelope
from kubectl_gpuadmit.sizing.logged import compared
from kubectl_gpuadmit.sizing.problem import Problem
from kubectl_gpuadmit.sizing.startlog import StartLog
from kubectl_gpuadmit.sizing.trial import Asked

if TYPE_CHECKING:
    from rich.text import Text

    from kubectl_gpuadmit.render.page import Page

_VERDICT = {
    "fits": ("ok", "FITS", "green"),
    "exceeds": ("no", "EXCEEDS", "red"),
    "unknown": ("unknown", "UNKNOWN", "yellow"),
}


def fit(
    asked: Asked,
    found: Envelope,
    fitting: Sequence[Alternative] = (),
    *,
    width: int = 80,
    ascii: bool = False,
) -> Text:
    """Verdict, why, what would fit, where the memory goes, on what it rests."""
    from rich.text import Text

    from kubectl_gpuadmit.render.page import BOLD, Page

    page = Page(width, ascii=ascii)
    _, shout, style = _VERDICT[found.fits]
    page.line((_subject(asked, found), BOLD), right=(shout, style))
    page.blank()
    for problem in found.problems:
        _reason(page, "no", problem)
    for problem in found.warnings:
        _reason(page, "warn", problem)
    for missing in found.unknown:
        page.block([("  ", ""), page.mark("unknown")], f"not known: {missing}", indent=4)
    if fitting:
        page.blank()
        page.line(("What would fit", BOLD), (" (each tried)", "dim"))
        for number, one in enumerate(shortest(fitting), 1):
            most = one.envelope.max_concurrency
            length = one.envelope.max_model_len
            holds = f"{most.likely:,.1f} requests of {length:,} tokens" if most else ""
            page.line((f"  {number}  {one.change:<34}", ""), (holds, "dim"))
    if found.weights is not None:
        page.blank()
        _account(page, found)
    _assumed(page, asked, found)
    return Text.assemble(page.text, end="")


def _subject(asked: Asked, found: Envelope) -> str:
    gpu = (
        f"{found.gpus} × {asked.product.name or f'{asked.product.mib:,} MiB'}"
        if asked.product
        else f"{found.gpus} GPU" + ("s" if found.gpus > 1 else "")
    )
    return f"{asked.model} · {gpu} · {asked.engine}"


def _reason(page: Page, mark: str, problem: Problem) -> None:
    page.block([("  ", ""), page.mark(mark), (problem.dimension, "")], problem.detail, indent=17)
    page.block([], f"fit/{problem.reason}", indent=17, style="dim")


def _account(page: Page, found: Envelope) -> None:
    device = f"of {found.device / GIB:.1f} GiB" if found.device else ""
    page.line(("A GPU  ", "bold"), (device, "dim"))
    if found.budget is not None:
        page.line(("  engine's share", ""), (f"{found.budget / GIB:>10.2f} GiB", ""))
    for name, amount in (
        ("weights", found.weights),
        ("activations", found.activations),
        ("overhead", found.overhead),
        ("cache", found.kv_cache),
    ):
        if amount is not None and name == "cache" and amount.likely < 0:
            short = (f"   short by {-amount.likely / GIB:.2f} GiB", "dim")
            page.line((f"  {name:<14}", ""), (f"{'none':>10}", ""), short)
        elif amount is not None:
            page.line(
                (f"  {name:<14}", ""),
                (f"{amount.likely / GIB:>10.2f} GiB", ""),
                (f"   {amount.low / GIB:.2f} to {amount.high / GIB:.2f}", "dim"),
            )
    page.blank()
    if found.kv_tokens is not None and found.max_concurrency is not None:
        length = found.max_model_len or 0
        page.line(
            (f"Cache  {found.kv_tokens.likely:,.0f} tokens", ""),
            (f"   {found.kv_tokens.low:,.0f} to {found.kv_tokens.high:,.0f}", "dim"),
        )
        page.line(
            (f"       {found.max_concurrency.likely:.1f} requests of {length:,} tokens", ""),
            (f"   {found.max_concurrency.low:.1f} to {found.max_concurrency.high:.1f}", "dim"),
        )
    if found.kv_bytes_per_token is not None:
        page.line((f"       {found.kv_bytes_per_token / 1024:,.1f} KiB a token a GPU", ""))


def _assumed(page: Page, asked: Asked, found: Envelope) -> None:
    page.blank()
    page.block([("Rests on  ", "bold")], asked.source or "nothing that was read", indent=10)
    for text in asked.assumed:
        page.block([], text, indent=10, style="dim")
    for assumption in found.assumptions:
        page.block([], f"{assumption.what} ({assumption.source})", indent=10, style="dim")


def advice(
    asked: Asked, found: Sequence[Configuration], *, width: int = 80, ascii: bool = False
) -> Text:
    """One line a configuration, least memory first."""
    from rich.text import Text

    from kubectl_gpuadmit.render.page import BOLD, Page

    page = Page(width, ascii=ascii)
    page.line((f"{asked.model} · {asked.engine}: what fits, least memory first", BOLD))
    page.blank()
    if not found:
        page.block([("  ", ""), page.mark("no")], "nothing that is known here holds it", indent=4)
        return Text.assemble(page.text, end="")
    page.line((f"  {'GPUs':<46}{'weights':>9}{'cache':>9}{'requests':>12}", "dim"))
    for c in found:
        name = page.cut(f"{c.envelope.gpus} × {c.product.name}", 44)
        weights = c.envelope.weights.likely / GIB if c.envelope.weights else 0.0
        cache = c.envelope.kv_cache.likely / GIB if c.envelope.kv_cache else 0.0
        most = c.envelope.max_concurrency.likely if c.envelope.max_concurrency else 0.0
        close = any(w.reason == "close-to-the-limit" for w in c.envelope.warnings)
        page.line(
            ("  ", ""),
            page.mark("warn" if close else "ok"),
            (f"{name:<44}", ""),
            (f"{weights:>9.1f}{cache:>9.1f}{most:>12,.1f}", ""),
        )
    length = found[0].envelope.max_model_len
    page.blank()
    page.block(
        [("  ", "")],
        "weights and cache in GiB a GPU; requests of "
        f"{length:,} tokens at once; ! is close to the limit",
        indent=2,
        style="dim",
    )
    _assumed(page, asked, found[0].envelope)
    return Text.assemble(page.text, end="")


_BURST = {
    "weights": "weights",
    "activations": "step",
    "kv-cache": "cache",
    "sequences": "seqs",
    "layout": "layout",
    "overhead": "overhead",
    "free-memory": "free",
}


def by_context(
    asked: Asked, found: Sequence[Line], *, width: int = 80, ascii: bool = False
) -> Text:
    """Requests at once, by product and context; else the dimension that bursts."""
    from rich.text import Text

    from kubectl_gpuadmit.render.page import BOLD, Page

    page = Page(width, ascii=ascii)
    tensor = asked.serving.tensor_parallel_size or 1
    page.line((f"{asked.model} · {tensor} of each · {asked.engine}: requests at once", BOLD))
    page.blank()
    contexts = [cell.context for cell in found[0].cells] if found else []
    room = max(1, (page.width - 26) // 8)
    shown = contexts[-room:]
    page.line((f"  {'context':<22}", "dim"), ("".join(f"{_short(c):>8}" for c in shown), "dim"))
    for line in found:
        name = page.cut(line.product.name.removeprefix("NVIDIA-"), 21)
        cells = [_cell(cell.envelope) for cell in line.cells if cell.context in shown]
        page.line((f"  {name:<22}", ""), ("".join(f"{text:>8}" for text in cells), ""))
    page.blank()
    page.block(
        [("  ", "")],
        "a word is what bursts: weights, the step's activations (step), "
        "the cache of one request (cache)",
        indent=2,
        style="dim",
    )
    if found:
        _assumed(page, asked, found[0].cells[-1].envelope)
    return Text.assemble(page.text, end="")


def _short(context: int) -> str:
    return f"{context // 1024}k"


def _cell(found: Envelope) -> str:
    if found.fits == "unknown":
        return "?"
    if found.problems:
        return _BURST[found.problems[0].dimension]
    most = found.max_concurrency.likely if found.max_concurrency else None
    return "fits" if most is None else f"{most:,.1f}" if most < 1000 else f"{most:,.0f}"


def log(
    asked: Asked,
    read: StartLog,
    found: Envelope | None,
    *,
    width: int = 80,
    ascii: bool = False,
) -> Text:
    """Where a log says the memory went, and how our estimate compares."""
    from rich.text import Text

    from kubectl_gpuadmit.render.page import BOLD, Page

    page = Page(width, ascii=ascii)
    shout = ("would not start", "red") if read.refusal else ("started", "green")
    page.line((f"{asked.model or 'model not named'} · {asked.engine}", BOLD), right=shout)
    if read.refusal:
        page.blank()
        page.block([("  ", ""), page.mark("no")], read.refusal, indent=4)
    page.blank()
    estimated = {one.what: one for one in compared(read, found)}
    page.line((f"  {'':<14}{'log':>14}{'estimate':>14}{'error':>9}", "dim"))
    for what, value, unit in (
        ("weights", read.weights, GIB),
        ("activations", read.activations, GIB),
        ("outside torch", read.outside_torch, GIB),
        ("graphs", read.graphs, GIB),
        ("cache", read.cache, GIB),
        ("tokens", read.tokens, 1),
    ):
        if value is None:
            continue
        theirs = f"{value / unit:,.2f} GiB" if unit == GIB else f"{value:,}"
        if one := estimated.get(what):
            mine = f"{one.ours:,.2f} GiB" if unit == GIB else f"{one.ours:,.0f}"
            page.line((f"  {what:<14}{theirs:>14}{mine:>14}{one.error * 100:>+8.1f}%", ""))
        else:
            page.line((f"  {what:<14}{theirs:>14}", ""))
    if found is not None and found.unknown:
        page.blank()
        for missing in found.unknown:
            page.block([("  ", ""), page.mark("unknown")], f"not known: {missing}", indent=4)
    if found is not None:
        _assumed(page, asked, found)
    return Text.assemble(page.text, end="")
