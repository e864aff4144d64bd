import decimal
import importlib.util
import pathlib

import pawl
from pawl.call import Call, read_json
from pawl.decode import decode

PACKAGE = pathlib.Path(__file__).resolve().parent.parent


def test_types_are_those_of_the_server(client):
    spec = importlib.util.spec_from_file_location("generate_types", PACKAGE / "scripts" / "generate_types.py")
    generator = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generator)
    made = generator.generate(client.request(Call("GET", "/openapi.json")))
    assert made == (PACKAGE / "src/pawl/api.py").read_text(), "run sdk/python/scripts/generate_types.py"


def test_a_newer_server_may_say_more():
    x = decode(
        pawl.api.Execution,
        {
            "id": "ex_1",
            "action": "code",
            "status": "failed",
            "attempt": 1,
            "queue": "default",
            "error": {"code": "a", "message": "b", "new": 1},
            "new": [1],
        },
    )
    assert x.error == pawl.api.Error(code="a", message="b")
    assert x.output is None


def test_help_is_enough():
    for name in pawl._VERBS:
        verb = getattr(pawl, name)
        assert verb.__doc__, name
        assert "self" not in str(pawl.__dict__[name].__signature__)
    for cls in (pawl.Client, pawl.AsyncClient, pawl.Result, pawl.InfraError):
        assert len(cls.__doc__) > 50
    for word in ("Args:", "Yields:", "Raises:", "Example:", "window", "run:"):
        assert word in pawl.map.__doc__


def test_numbers_keep_their_digits():
    texts = ["1e400", "-1e400", "1e-400", "0.1000000000000000055511151231257827", "100000000000000000000000000000000.5", "9" * 5000]
    for text in texts:
        assert read_json(f"[{text}]") == [decimal.Decimal(text)]
    for text in ["0.1", "1.0", "1e5", "-0.0", "0.30000000000000004", "1.7976931348623157e308", "2.50"]:
        assert repr(read_json(text)) == repr(float(text))
    assert read_json("18446744073709551616") == 2**64
