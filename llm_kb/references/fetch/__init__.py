"""Carry out an approved plan, and refresh a topic."""
