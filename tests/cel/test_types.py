"""Types that are open until something binds them: as cel-go's checker does."""

from __future__ import annotations

import pytest

from kubectl_gpuadmit.cel import dra

UNTYPED = "device.attributes['gpu.example.com'].index"
"""Of type any, where lists are not allowed in attributes."""


@pytest.mark.parametrize(
    ("expression", "signature"),
    [
        (f"[].filter(x, x > {UNTYPED}).exists(x, x > 3)", "(bool, int)"),
        (f"[].filter(x, x * {UNTYPED} == x).exists(x, x > 'a')", "(double, string)"),
        ("[].filter(x, x > 3).exists(x, x > 'a')", "(int, string)"),
    ],
)
def test_of_several_overloads_that_fit_the_first_binds_the_items_of_an_empty_list(
    expression: str, signature: str
) -> None:
    found = dra.compile(expression, list_attributes=False, new=True)
    assert isinstance(found, dra.Problem)
    assert f"found no matching overload for '_>_' applied to '{signature}'" in found.message
