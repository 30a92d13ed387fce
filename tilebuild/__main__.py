"""`python -m tilebuild` is the `tilebuild` command. Knows nothing but where the command begins."""

from tilebuild._boot import main

if __name__ == "__main__":
    main()
