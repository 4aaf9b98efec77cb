"""Tests of the capture package."""
