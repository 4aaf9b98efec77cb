"""Fuzz targets, one for each parser."""
