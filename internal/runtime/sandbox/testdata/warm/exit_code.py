import sys; print("x", end=""); sys.exit(7)
