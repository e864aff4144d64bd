import os, sys
print(sys.argv, sys.orig_argv, sys.path, sys.flags, sys.executable, sys.prefix, sys.warnoptions, sys._xoptions)
print(__name__, __file__, __spec__, __package__, __builtins__, sorted(globals()), type(__loader__).__name__)
print(dict(os.environ), os.environb, sorted(__import__("posix").environ.items()), os.getenv("PYTHONPATH"))
print(sorted(set(sys.modules)), sorted(sys.path_importer_cache), sys.meta_path, sys.path_hooks)
print(sys.getrecursionlimit(), sys.getdefaultencoding(), sys.getfilesystemencoding(), sys.stdout.encoding, sys.stdout.errors)
print(sys._getframe().f_back, sys.dont_write_bytecode, sys.getswitchinterval(), sys.gettrace(), sys.excepthook, sys.displayhook)
import gc
print(gc.isenabled(), gc.get_threshold(), gc.callbacks)
