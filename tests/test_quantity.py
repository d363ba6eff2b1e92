"""Quantities as apimachinery v0.37.2 reads and prints them: the table is what that code says."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kubectl_gpuadmit.kube import quantity
from kubectl_gpuadmit.kube.quantity import NANO, Quantity, QuantityError, canonical, parse

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A loaded machine is no failure."""

# text, Value(), MilliValue(), String(), canonical form, format
TABLE = """
0                              0 0 0 0 DecimalSI
1                              1 1000 1 1 DecimalSI
+1                             1 1000 +1 1 DecimalSI
-1                             -1 -1000 -1 -1 DecimalSI
01                             1 1000 01 1 DecimalSI
1.                             1 1000 1. 1 DecimalSI
.5                             1 500 500m 500m DecimalSI
0.5                            1 500 500m 500m DecimalSI
1.5                            2 1500 1500m 1500m DecimalSI
1.500                          2 1500 1.500 1500m DecimalSI
-1.5                           -2 -1500 -1500m -1500m DecimalSI
100m                           1 100 100m 100m DecimalSI
1500m                          2 1500 1500m 1500m DecimalSI
1u                             1 1 1u 1u DecimalSI
0.1n                           1 1 1n 1n DecimalSI
-0.1n                          1 1 -1n -1n DecimalSI
1k                             1000 1000000 1k 1k DecimalSI
1000k                          1000000 1000000000 1M 1M DecimalSI
1.5G                           1500000000 1500000000000 1500M 1500M DecimalSI
.                              0 0 0 0 DecimalSI
-                              0 0 0 0 DecimalSI
k                              0 0 0 0 DecimalSI
Ki                             0 0 0 0 BinarySI
1Ki                            1024 1024000 1Ki 1Ki BinarySI
1024Ki                         1048576 1048576000 1Mi 1Mi BinarySI
1000Ki                         1024000 1024000000 1000Ki 1000Ki BinarySI
1.5Gi                          1610612736 1610612736000 1536Mi 1536Mi BinarySI
0.5Ki                          512 512000 512 512 BinarySI
0.0001Ki                       1 103 102400u 102400u DecimalSI
1.1Ki                          1127 1126400 1126400m 1126400m BinarySI
-1.5Ki                         -1536 -1536000 -1536 -1536 BinarySI
-1.1Ki                         -1125 -1126400 -1126400m -1126400m BinarySI
16Ei                           9223372036854775807 -1000 9223372036854775807 9223372036854775807 BinarySI
-16Ei                          -9223372036854775807 1000 -9223372036854775807 -9223372036854775807 BinarySI
1e3                            1000 1000000 1e3 1e3 DecimalExponent
1E3                            1000 1000000 1E3 1e3 DecimalExponent
1e4                            10000 10000000 10e3 10e3 DecimalExponent
1e+3                           1000 1000000 1e+3 1e3 DecimalExponent
1e-3                           1 1 1e-3 1e-3 DecimalExponent
1e-10                          1 1 1e-9 1e-9 DecimalExponent
1e4294967299                   1000 1000000 1e4294967299 1e3 DecimalExponent
1E                             1000000000000000000 0 1E 1E DecimalSI
9E                             9000000000000000000 0 9E 9E DecimalSI
10E                            0 0 10E 10E DecimalSI
1000E                          0 0 1 1 DecimalSI
9223372036854775808            -9223372036854775808 0 9223372036854775808 9223372036854775808 DecimalSI
1e30                           0 0 1e30 1e30 DecimalExponent
1234567890123456789012345678   7888470988696384334 -6735474851303757648 1234567890123456789012345678 1234567890123456789012345678 DecimalSI
"""  # noqa: E501


def rows() -> list[tuple[str, int, int, str, str, str]]:
    return [
        (text, int(value), int(milli), string, canon, form)
        for text, value, milli, string, canon, form in (r.split() for r in TABLE.split("\n") if r)
    ]


@pytest.mark.parametrize(("text", "value", "milli", "string", "canon", "form"), rows())
def test_a_quantity_is_what_apimachinery_makes_of_it(
    text: str, value: int, milli: int, string: str, canon: str, form: str
) -> None:
    read = parse(text)
    got = (read.value(), read.milli(), str(read), read.canonical(), read.format)
    assert got == (value, milli, string, canon, form)
    assert (quantity.value(text), quantity.milli(text)) == (value, milli)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("", "write a number such as 1 or 16Gi"),
        ("8GB", "write 8G (powers of 1000) or 8Gi (powers of 1024)"),
        ("16gb", "write 16G (powers of 1000) or 16Gi (powers of 1024)"),
        ("16g", "write 16G (powers of 1000) or 16Gi (powers of 1024)"),
        ("4K", "write 4k (powers of 1000) or 4Ki (powers of 1024)"),
        ("1 Gi", "write 1Gi"),
        ("4GiB", "write 4Gi"),
        ("1,000", "write 1000"),
        ("1,5", "write 1.5"),
        ("${GPU_LIMIT:-1}", "render the manifest first (envsubst, helm template, kustomize build)"),
        ("{{ .Values.n }}", "render the manifest first (envsubst, helm template, kustomize build)"),
        ("1x", "suffixes are n, u, m, k, M, G, T, P, E or Ki, Mi, Gi, Ti, Pi, Ei"),
    ],
)
def test_a_slip_is_refused_with_what_was_meant(text: str, hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse(text)
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    "text",
    ["K", "1.2.3", "1e", "e", "1ee3", "Ei", ".Ei", "--1", "1Ki2", "1e3.", "１", "1\u00b5", "1e+",
     "1e9223372036854775808", True, False, float("nan"), float("inf"), 10**1001, "9" * 1001],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(text: str | int | float) -> None:
    with pytest.raises(QuantityError):
        parse(text)


@pytest.mark.parametrize(
    ("number", "text"),
    [(1, "1"), (0.5, "500m"), (1.0, "1"), (1000.0, "1k"), (1e21, "1e+21"), (1e-7, "100n"),
     (2.5e-5, "25u"), (1.5e16, "15P"), (-0.0, "0"), (10**20, "100E")],
)  # fmt: skip
def test_a_number_reads_as_the_text_in_which_kubectl_sends_it(number: float, text: str) -> None:
    wanted = "100e-9" if number == 1e-7 else text
    assert str(parse(number)) in (wanted, quantity.written(number))
    assert parse(number) == parse(quantity.written(number))


def test_space_around_a_quantity_is_ignored_as_the_api_does() -> None:
    assert parse(" 1Gi\n") == parse("1Gi")


def test_order_and_equality_are_of_the_amount_and_not_of_the_format() -> None:
    binary, plain = parse("1Gi"), parse("1073741824")
    assert binary == plain
    assert hash(binary) == hash(plain)
    assert binary <= plain <= binary
    assert not binary < plain
    assert parse("1G") < binary < parse("1.1G")


def test_one_and_true_do_not_share_a_cache_entry() -> None:
    assert parse(1).value() == 1
    with pytest.raises(QuantityError):
        parse(True)


POWERS = {
    **{suffix: Fraction(10) ** power for suffix, power in zip("num", (-9, -6, -3), strict=True)},
    **{suffix: Fraction(10) ** (3 * n) for n, suffix in enumerate(("", *"kMGTPE"))},
    **{f"{letter}i": Fraction(1024) ** n for n, letter in enumerate("KMGTPE", 1)},
    "e3": Fraction(1000),
    "E-4": Fraction(1, 10_000),
    "e+17": Fraction(10**17),
}
PARTS = st.tuples(
    st.sampled_from(["", "+", "-"]),
    st.integers(0, 10**22).map(str),
    st.integers(0, 10**14).map(lambda n: f".{n}") | st.just(""),
    st.sampled_from(sorted(POWERS)),
)
LEGAL = PARTS.map("".join)


@relaxed
@given(st.text(max_size=40) | LEGAL)
@example("1e999999999999")
@example("-0.e-17")
def test_any_text_is_a_quantity_or_one_clear_error(text: str) -> None:
    try:
        read = parse(text)
    except QuantityError as error:
        assert str(error)
        assert "\n" not in str(error)
    else:
        assert -(2**63) <= read.value() < 2**63
        assert -(2**63) <= read.milli() < 2**63


@relaxed
@given(
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.sampled_from(["DecimalSI", "BinarySI", "DecimalExponent"]),
)
def test_printing_and_reading_again_loses_nothing(nano: int, form: quantity.Format) -> None:
    again = parse(canonical(nano, form))
    assert again.nano == nano
    assert again.canonical() == canonical(nano, form) or form == "BinarySI"


@relaxed
@given(PARTS)
def test_the_amount_is_never_smaller_than_written_and_off_by_less_than_a_nano(
    parts: tuple[str, str, str, str],
) -> None:
    sign, whole, fraction, suffix = parts
    exact = Fraction(f"{whole}{fraction or '.0'}") * POWERS[suffix] * NANO
    if suffix.endswith("i"):
        exact = min(exact, Fraction(quantity.MAX))
    nano = parse("".join(parts)).nano
    assert exact <= abs(nano) < exact + 1
    assert nano == 0 or (nano < 0) == (sign == "-")


def test_whole_units_round_away_from_zero_in_the_short_form() -> None:
    assert [parse(t).value() for t in ("1.1", "-1.1", "1n", "-1n")] == [2, -2, 1, -1]


def test_a_quantity_made_from_nanos_prints_in_its_format() -> None:
    assert str(Quantity(1536 * 2**20 * NANO, "BinarySI")) == "1536Mi"
