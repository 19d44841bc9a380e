"""The HTTP front: what reads requests off the wire, before any route sees them."""
