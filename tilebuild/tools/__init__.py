"""What actions run. Each module is one tool with `main(argv) -> int`; see `protocol` for how it talks to
the engine.
"""
