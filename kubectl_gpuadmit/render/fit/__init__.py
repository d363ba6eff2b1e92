"""The answers of ``fit``: as a page and as data."""
