"""Cutting files into chunks along their headings and definitions. Pure."""
