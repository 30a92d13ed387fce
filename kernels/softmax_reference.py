"""What `softmax` means."""


def softmax(xp, *, x):
    logits = x.astype(xp.float64)
    numerator = xp.exp(logits - logits.max(axis=1, keepdims=True))
    return numerator / numerator.sum(axis=1, keepdims=True)
