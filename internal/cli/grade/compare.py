
def _pawl_check(inputs, reference, name, tolerance, candidate):
    import copy
    import math

    known = {}
    exec(reference, known)

    def same(got, want):
        if isinstance(got, float) or isinstance(want, float):
            return got == want or math.isclose(got, want, rel_tol=1e-7, abs_tol=tolerance)
        if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
            return len(got) == len(want) and all(map(same, got, want))
        return got == want

    for given in inputs:
        want = known[name](*copy.deepcopy(given))
        got = candidate(*copy.deepcopy(given))
        assert same(got, want), f"{name}(*{given!r:.200}) is {got!r:.200}, and should be {want!r:.200}"
