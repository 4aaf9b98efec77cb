"""Tests; their folders mirror the rooms of the package."""
