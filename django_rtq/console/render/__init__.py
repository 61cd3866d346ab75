"""Renderers of sheets: what people look at, as HTML, on a terminal and as JSON."""
