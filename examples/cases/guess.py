# Guesses a number by halves. Its output must reach the interactor at once, so it is flushed:
#
#   pawl eval --cases examples/cases/guess --interactor examples/cases/guess_interactor.py examples/cases/guess.py
low, high = 1, 1000
while True:
    guess = (low + high) // 2
    print(guess, flush=True)
    answer = input()
    if answer == "right":
        break
    if answer == "higher":
        low = guess + 1
    else:
        high = guess - 1
