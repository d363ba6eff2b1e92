"""Tests of what DRA knows and decides."""
