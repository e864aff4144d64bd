# Thinks of a number from 1 to 1000, and rejects a program that has not found it after 10 guesses. What it reads comes from the program, what
# it prints goes to the program, and what it writes to stderr becomes the message.
import sys

number = int(open(sys.argv[1]).read())
for n in range(1, 11):
    guess = sys.stdin.readline().strip()
    if not guess.isdigit():
        sys.exit(f"guess {n} is not a number: {guess!r}")
    if int(guess) == number:
        print("right", flush=True)
        print(f"{n} guesses", file=sys.stderr)
        sys.exit(0)
    print("higher" if int(guess) < number else "lower", flush=True)
sys.exit("10 guesses were not enough")
