import os; print("lost", end=""); os._exit(9)
