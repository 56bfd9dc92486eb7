"""How each format writes a conversation down: read into the neutral form, and written from it.

A shape loses nothing: what it does not understand is opaque and goes back as it came. It judges
nothing either: orphans, gaps and odd ids are read like anything else. Only what is not of the
format at all is refused, with its place.
"""
