import os, pathlib, tempfile
with open("left", "w") as f:
    f.write("text ü\n")
print(pathlib.Path("left").read_text(), oct(os.stat("left").st_mode), os.stat("left").st_uid)
with tempfile.NamedTemporaryFile() as f:
    print(os.path.dirname(f.name))
for path in ("/etc/shadow", "/root", "/x", "/usr/x", "/.pawl", "missing"):
    try:
        open(path, "a")
    except OSError as e:
        print(e)
print(os.listdir("/"), os.path.exists("/.pawl"), os.listdir("/dev"))
