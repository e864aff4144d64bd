
def _pawl_check(inputs, reference, name, tolerance, candidate):
    import copy
    import math

    known = {}
    exec(reference, known)

    def same(got, want):
        if isinstance(want, float):
            return got == want or math.isclose(got, want, rel_tol=1e-7, abs_tol=tolerance or 1e-6)
        if isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)):
            return len(got) == len(want) and all(map(same, got, want))
        return got == want

    for given in inputs:
        want = known[name](*copy.deepcopy(given))
        got = candidate(*copy.deepcopy(given))
        if name == "find_zero":  # HumanEval/32: any zero of the polynomial is right
            right = abs(sum(c * got**i for i, c in enumerate(given[0]))) <= (tolerance or 1e-4)
        else:
            right = same(got, want)
        assert right, f"{name}(*{given!r:.200}) is {got!r:.200}, and should be {want!r:.200}"
