"""A while loop whose trip count depends on the data."""

import cuda.tile as ct


@ct.kernel
def collatz_steps(start, steps):
    """steps[i] = how often n -> n/2 or 3n+1 is applied until start[i] has become 1."""
    i = ct.bid(0)
    n = ct.load(start, index=(i,), shape=()).item()
    count = 0
    while n > 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    ct.store(steps, index=(i,), tile=count)
