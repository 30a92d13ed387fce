"""What `collatz_steps` means."""


def collatz_steps(xp, *, start):
    n = start.astype(xp.int64)
    steps = xp.zeros_like(n)
    while bool((n > 1).any()):
        steps += n > 1
        n = xp.where(n > 1, xp.where(n % 2 == 0, n // 2, 3 * n + 1), n)
    return steps
