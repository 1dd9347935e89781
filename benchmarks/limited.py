"""Run a job in a child process with a limit of time, and say what became of it."""

import multiprocessing
import resource
import traceback

CONTEXT = multiprocessing.get_context("fork")
"""A fork has the data and the compiled functions of its parent. Set one thread for every BLAS and OpenMP before."""


def _child(job, connection, seconds):
    # The limit is on processor time, which other work on the machine does not disturb.
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    try:
        connection.send(job() | {"status": "ok"})
    except Exception as problem:
        last = traceback.extract_tb(problem.__traceback__)[-1]
        connection.send({"status": f"{type(problem).__name__}: {problem} ({last.name})"[:200]})


def limited(job, seconds):
    """What the job returns, a dictionary, with its "status".

    The status is "ok", the exception, or "over … s" when the child used more than so many processor seconds.
    """
    receive, send = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_child, args=(job, send, seconds))
    process.start()
    send.close()
    try:
        result = receive.recv()
    except EOFError:  # the child was stopped before it could answer
        result = {"status": f"over {seconds:g} s"}
    process.join()
    return result
