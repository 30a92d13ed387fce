"""What `matmul` means."""


def matmul(xp, *, a, b):
    return a.astype(xp.float64) @ b.astype(xp.float64)
