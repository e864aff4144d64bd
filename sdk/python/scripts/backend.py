"""Builds the package without a network and without any other package (PEP 517). scripts/wheels gives it a binary to carry.

Archives are the same, byte for byte, for the same content: members are sorted and have one time.
"""

import base64
import gzip
import hashlib
import io
import os
import pathlib
import re
import tarfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIME = (1980, 1, 1, 0, 0, 0)


def _setting(name):
    return re.search(rf'^{name} = "(.*)"$', (ROOT / "pyproject.toml").read_text(), re.M)[1]


VERSION = re.search(r'__version__ = "(.*)"', (ROOT / "src" / "pawl" / "version.py").read_text())[1]
NAME = _setting("name")


def _metadata():
    return (
        f"Metadata-Version: 2.4\nName: {NAME}\nVersion: {VERSION}\nSummary: {_setting('description')}\n"
        f"Requires-Python: {_setting('requires-python')}\nLicense-Expression: {_setting('license')}\n"
        f"Description-Content-Type: text/markdown\n\n{(ROOT / 'README.md').read_text()}"
    )


def _sources():
    return sorted(p for p in (ROOT / "src").rglob("*") if p.suffix == ".py" or p.name == "py.typed")


def write_wheel(directory, tag="py3-none-any", files=None, binary=None):
    """Writes a wheel, and returns its name. binary is the program pawl that it puts into PATH."""
    members = {str(p.relative_to(ROOT / "src")): p.read_bytes() for p in _sources()} if files is None else files
    info = f"{NAME}-{VERSION}.dist-info"
    if binary:
        members[f"{NAME}-{VERSION}.data/scripts/pawl"] = pathlib.Path(binary).read_bytes()
    members[f"{info}/METADATA"] = _metadata().encode()
    tags = "".join(f"Tag: {'-'.join([*tag.split('-')[:2], platform])}\n" for platform in tag.split("-")[2].split("."))
    members[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nGenerator: pawl\nRoot-Is-Purelib: {str(not binary).lower()}\n{tags}".encode()
    members[f"{info}/entry_points.txt"] = b"[pytest11]\npawl = pawl.testing\n"
    record = ""
    for name, data in sorted(members.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{name},sha256={digest},{len(data)}\n"
    members[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{NAME}-{VERSION}-{tag}.whl"
    with zipfile.ZipFile(pathlib.Path(directory) / wheel, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as out:
        for name, data in sorted(members.items(), key=lambda m: ("dist-info" in m[0], m[0])):
            member = zipfile.ZipInfo(name, TIME)
            member.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            member.compress_type = zipfile.ZIP_DEFLATED
            out.writestr(member, data)
    return wheel


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return write_wheel(wheel_directory, files={f"__editable__{NAME}.pth": f"{ROOT / 'src'}\n".encode()})


def build_sdist(sdist_directory, config_settings=None):
    base = f"{NAME}-{VERSION}"
    names = ["README.md", "pyproject.toml", "scripts/backend.py", *(str(p.relative_to(ROOT)) for p in _sources())]
    members = {f"{base}/{n}": (ROOT / n).read_bytes() for n in names} | {f"{base}/PKG-INFO": _metadata().encode()}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name, data in sorted(members.items()):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), 0o644
            out.addfile(member, io.BytesIO(data))
    target = os.path.join(sdist_directory, f"{base}.tar.gz")
    with open(target, "wb") as f, gzip.GzipFile(filename="", fileobj=f, mode="wb", mtime=0) as zipped:
        zipped.write(packed.getvalue())
    return os.path.basename(target)
