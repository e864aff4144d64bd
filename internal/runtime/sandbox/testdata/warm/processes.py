import concurrent.futures, multiprocessing, os, sys
def square(x):
    return x * x
if __name__ == "__main__":
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            print(method, pool.map(square, range(5)))
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        print(list(pool.map(square, range(5))))
    q = multiprocessing.get_context("fork").Queue()
    p = multiprocessing.get_context("fork").Process(target=lambda: q.put(os.getppid()))
    p.start()
    print(q.get(), p.join(), p.exitcode)
