"""Tests of the add-on of documents."""
