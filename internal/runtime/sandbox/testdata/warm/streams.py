import sys
print(sys.stdin, sys.stdout, sys.stderr)
print(sys.stdin.seekable(), sys.stdin.isatty(), sys.stdout.line_buffering, sys.stdout.write_through, sys.stderr.line_buffering)
print(repr(input()), repr(input("? ")))
print(repr(sys.stdin.buffer.read()))
try:
    input()
except EOFError as e:
    print("end", e)
sys.stderr.write("to stderr\n")
sys.stdout.buffer.write(b"\xff\x00raw\n")
