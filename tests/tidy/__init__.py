"""Checks of the repository itself: language, layout, documents. Needs nothing but Python."""
