"""What `vector_add` means."""


def vector_add(xp, *, a, b):
    return a.astype(xp.float64) + b.astype(xp.float64)
