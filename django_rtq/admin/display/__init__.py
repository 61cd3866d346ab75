"""How values are shown on pages."""
