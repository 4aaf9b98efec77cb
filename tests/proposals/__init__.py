"""Tests of proposals."""
