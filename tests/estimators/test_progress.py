"""Long work says how far it is where a person looks on, and nowhere else."""

import io
import os
import subprocess
import sys
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from joblib import Parallel, delayed

from sparsebayes import ARDRegressor, DRVMRegressor, RVMClassifier, RVMRegressor, StabilitySelector
from sparsebayes.engine.loop import Info
from sparsebayes.estimators import _base, _progress
from sparsebayes.estimators._progress import SCREEN, Bar, Line, Steps, looked_at, shown

needs_rich = pytest.mark.skipif(not _progress.can_draw(), reason="rich draws in terminals")
STEP = Info(-12.5, 3e-3, 7, action="add")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Cell:
    """What IPython's display shows in a cell: the outputs, each as last updated, and how often that was."""

    def __init__(self):
        self.outputs, self.n_updates = [], 0

    def display(self, bundle, *, raw, display_id):
        assert raw
        assert display_id
        self.outputs.append(bundle["text/plain"])
        place = len(self.outputs) - 1

        def update(bundle, *, raw):
            self.outputs[place] = bundle["text/plain"]
            self.n_updates += 1

        return SimpleNamespace(update=update)


@pytest.fixture
def at_once(monkeypatch):
    """Lines appear without delay, and are drawn often."""
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    monkeypatch.setattr(_progress, "PERIOD", 1e-3)


@pytest.fixture
def a_terminal(monkeypatch):
    """To be called in a test: pytest gives each phase a standard error of its own."""

    def replace():
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", "150")
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return replace


@pytest.fixture
def cell(monkeypatch):
    """A notebook with one cell."""
    cell = Cell()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=cell.display))
    return cell


@pytest.fixture
def slow_steps(monkeypatch):
    """Each step takes its time, so that there is something to see."""
    tell = Steps.__call__

    def slowly(self, n_steps, info):
        tell(self, n_steps, info)
        time.sleep(0.02)

    monkeypatch.setattr(Steps, "__call__", slowly)


def is_clean():
    return not SCREEN.lines and not SCREEN.thread.is_alive()


# --- who looks on ---


def test_pipes_are_not_looked_at_and_terminals_and_notebooks_are(capsys, monkeypatch, request):
    assert not looked_at()
    monkeypatch.setattr(sys, "stderr", None)  # as in a program without a console
    assert not looked_at()
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert looked_at()
    monkeypatch.undo()
    assert not looked_at()
    request.getfixturevalue("cell")
    assert looked_at()


def test_a_shell_in_a_terminal_is_no_notebook(monkeypatch):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: SimpleNamespace()))
    assert not _progress.in_notebook()
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))
    assert not _progress.in_notebook()


def seen_by_worker():
    sys.stderr = Terminal()
    return looked_at()


def test_workers_do_not_draw():
    assert Parallel(n_jobs=2)(delayed(seen_by_worker)() for _ in range(2)) == [False, False]


# --- lines ---


def test_a_fit_tells_its_numbers_and_counts_over_stages():
    line = Steps("Model")
    assert "step" not in line.text()
    line(1, STEP)
    line(1, STEP)
    line.places["class"] = "class 2 of 3"
    words = ["Model", "0:00", "class 2 of 3", "step 2", "log evidence -12.5000", "active 7", "to gain 3.0e-03", "add"]
    assert line.text()[2:] == "  ".join(words)
    assert line.last() == "Model: 2 steps in 0.0 s"


def test_what_is_not_known_is_not_told():
    line = Steps("Model")
    line(1, Info(-1.0, np.inf, 3))
    assert line.text().endswith("active 3")


def test_clock():
    line = Line("work")
    line.begun -= 1e6
    for seconds, clock in [(0, "0:00"), (59.9, "0:59"), (61, "1:01"), (3600, "1:00:00"), (36061.5, "10:01:01")]:
        line.ended = line.begun + seconds
        assert line.clock == clock


def test_a_bar_fills():
    bar = Bar("work", 4)
    widths = []
    for done in range(5):
        bar.reach(done)
        widths.append(bar.text().count("━"))
        assert f"{done} of 4" in bar.text()
    assert widths == [0, 7, 15, 22, 30]
    took = bar.seconds
    time.sleep(1e-3)
    assert bar.seconds == took  # the clock of what is done stands still


# --- the screen ---


@needs_rich
def test_a_short_fit_shows_nothing_at_all(make_data, slow_steps, at_once, a_terminal, monkeypatch):
    terminal = a_terminal()
    monkeypatch.setattr(_progress, "DELAY", 60.0)
    ARDRegressor(verbose=1).fit(*make_data())
    assert terminal.getvalue() == ""
    assert is_clean()


@needs_rich
def test_a_long_fit_is_drawn_and_leaves_one_line(make_data, slow_steps, at_once, a_terminal):
    terminal = a_terminal()
    RVMRegressor(verbose=1).fit(*make_data())
    live, left = terminal.getvalue().rsplit("\r\x1b[1A\x1b[2K", 1)
    assert "RVMRegressor" in live
    assert "log evidence" in live
    assert left.startswith("RVMRegressor: ")
    assert left.count("\n") == 1
    assert live.count("\x1b[?25l") == live.count("\x1b[?25h") == 1  # the cursor was away and is back
    assert is_clean()


@needs_rich
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_the_screen_is_closed_whatever_happens(make_data, at_once, a_terminal, monkeypatch, error):
    terminal = a_terminal()

    def interrupt(self, n_steps, info):
        time.sleep(0.1)
        if n_steps == 2:
            raise error("here")

    monkeypatch.setattr(Steps, "__call__", interrupt)
    with pytest.raises(error, match="here"):
        ARDRegressor(verbose=1).fit(*make_data())
    assert "ARDRegressor" in terminal.getvalue()
    assert "ARDRegressor: " not in terminal.getvalue()  # what did not end well has no summary
    assert terminal.getvalue().endswith("\x1b[?25h\r\x1b[1A\x1b[2K")  # cursor back, line gone
    assert is_clean()
    assert _base._WATCH.get() is None


@needs_rich
def test_work_inside_other_work_adds_its_line(at_once, a_terminal):
    terminal = a_terminal()
    with SCREEN.showing(Bar("outer", 3)):
        with SCREEN.showing(Steps("inner")):
            time.sleep(0.1)
        inside = terminal.getvalue()
        time.sleep(0.1)
    assert "outer" in inside
    assert "inner" in inside
    assert "inner" not in terminal.getvalue()[len(inside) :].split("\x1b[2K", 2)[-1]
    assert is_clean()


@needs_rich
def test_several_threads_share_the_screen(at_once, a_terminal):
    terminal = a_terminal()

    def work(k):
        with SCREEN.showing(Steps(f"work {k}")):
            time.sleep(0.05)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert is_clean()
    assert terminal.getvalue().count("\x1b[?25l") == 1


@needs_rich
def test_parts_are_counted(at_once, a_terminal, make_data, monkeypatch):
    a_terminal()
    seen = []
    monkeypatch.setattr(Steps, "__call__", lambda line, n_steps, info: seen.append(list(line.places.values())))
    X, y = make_data()
    RVMClassifier(vectors="sparse", verbose=1).fit(X, np.digitize(y, [-1, 1]))
    assert {tuple(places) for places in seen} == {(f"class {k} of 3",) for k in (1, 2, 3)}
    seen.clear()
    ARDRegressor(verbose=1).fit(X, np.column_stack([y, -y]))
    assert {tuple(places) for places in seen} == {(f"output {k} of 2",) for k in (1, 2)}
    seen.clear()
    DRVMRegressor(verbose=1, n_restarts=2).fit(X[:30], y[:30])
    assert {("start 1 of 2",), ("start 2 of 2",), ()} == {tuple(places) for places in seen}


@needs_rich
def test_classes_of_workers_are_counted(at_once, a_terminal, make_data):
    terminal = a_terminal()
    X, y = make_data()
    RVMClassifier(vectors="sparse", verbose=1, n_jobs=2).fit(X, np.digitize(y, [-1, 1]))
    assert "class 1 of 3" in terminal.getvalue()
    assert is_clean()


# --- notebooks ---


def test_a_notebook_shows_one_output_that_is_updated(make_data, slow_steps, at_once, cell):
    RVMRegressor(verbose=1).fit(*make_data())
    (output,) = cell.outputs
    assert output.startswith("RVMRegressor: ")
    assert cell.n_updates > 2
    assert is_clean()


def test_a_notebook_shows_bars_too(at_once, cell):
    for _ in shown(range(5), 5, "selecting", verbose=1):
        time.sleep(0.02)
    assert cell.outputs == [""]  # a bar leaves nothing behind
    assert cell.n_updates > 2


# --- pipes ---


def test_nothing_goes_into_a_pipe_unless_every_step_is_asked_for(make_data, capfd, monkeypatch):
    monkeypatch.setattr(_progress, "DELAY", 0.0)
    ARDRegressor(verbose=1).fit(*make_data())
    assert list(shown(range(3), 3, "selecting", verbose=1)) == [0, 1, 2]
    assert capfd.readouterr() == ("", "")
    model = ARDRegressor(verbose=2).fit(*make_data())
    out, lines = capfd.readouterr()
    assert out == ""
    assert len(lines.splitlines()) >= model.n_iter_


def test_a_terminal_without_rich_gets_some_of_the_lines(make_data, a_terminal, monkeypatch):
    terminal = a_terminal()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    X, y = make_data(n=100, d=30, n_true=20)
    ARDRegressor(verbose=1, min_gain=0, solver="em").fit(X, y)
    some = terminal.getvalue().splitlines()
    steps = [int(line.split()[1]) for line in some]
    assert len(some) > 2
    assert all(step == 1 or step % 10 == 0 for step in steps)


PROGRAM = """
import time
import numpy as np
from sparsebayes import RVMRegressor

def kernel(A, B):
    time.sleep(2)
    print("inside")
    return A @ B.T

rng = np.random.default_rng(0)
X = rng.standard_normal((60, 3))
print("before")
RVMRegressor(vectors="sparse", kernel=kernel, verbose=1).fit(X, X[:, 0] + 0.1 * rng.standard_normal(60))
print("after")
"""


@needs_rich
def test_a_real_terminal_is_drawn_on_and_standard_output_stays_clean(on_terminal):
    seen, out = on_terminal(PROGRAM)
    assert set(out.split()) == {"before", "inside", "after"}  # also what is printed while the line is there
    assert "inside" not in seen
    assert len(seen.split("\x1b[2K")) > 3
    assert seen.splitlines()[-1].startswith("\x1b[1A\x1b[2KRVMRegressor: ")


def test_a_real_pipe_stays_empty():
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", PROGRAM]
    result = subprocess.run(command, capture_output=True, env=environment, text=True, timeout=60, check=True)
    assert set(result.stdout.split()) == {"before", "inside", "after"}
    assert result.stderr == ""


# --- selections ---


@needs_rich
def test_a_selection_has_a_bar_and_no_line_of_its_own(make_data, at_once, a_terminal):
    terminal = a_terminal()
    StabilitySelector(ARDRegressor(average=False), n_resamples=20, verbose=1).fit(*make_data())
    assert "selecting" in terminal.getvalue()
    assert "StabilitySelector" not in terminal.getvalue()
    assert is_clean()
