"""Figures drawn once and written as SVG or PNG: shapes, colours, scales, text."""
