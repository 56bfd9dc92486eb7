"""Recovery over HTTP: one router per noun."""
