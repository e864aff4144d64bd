# Prints the primes below each number on its input. Run it on all cases of primes/:
#
#   pawl eval --cases examples/cases/primes examples/cases/primes.py
import sys

for line in sys.stdin:
    n = int(line)
    sieve = [True] * n
    print(*(i for i in range(2, n) if sieve[i] and not sieve.__setitem__(slice(i * i, n, i), [False] * len(range(i * i, n, i)))))
