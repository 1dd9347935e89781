"""The report in a browser: on a phone and on a desk, by light and in darkness, on paper, and by keyboard."""

import contextlib
import itertools
import json
import os
import select
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, field

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
FLAGS += ["--no-first-run", "--disable-extensions", "--disable-component-update", "--disable-background-networking"]
FLAGS += ["--hide-scrollbars", "--disable-features=Translate,MediaRouter,OptimizationHints"]
# The browser reads from file descriptor 3 and writes to 4.
START = "import fcntl, os, sys; up = [fcntl.fcntl(int(a), fcntl.F_DUPFD, 10) for a in sys.argv[1:3]]; "
START += "os.dup2(up[0], 3); os.dup2(up[1], 4); os.execvp(sys.argv[3], sys.argv[3:])"
PATIENCE = 60
"""Seconds for an answer: a loaded machine is slow, a hung browser never answers."""


@dataclass
class Browser:
    """One page of a browser; `events` are what it has told without being asked."""

    to: int
    back: int
    session: str = ""
    events: list = field(default_factory=list)
    _numbers: itertools.count = field(default_factory=lambda: itertools.count(1))
    _bytes: bytes = b""

    def ask(self, method, **params):
        """The answer to a command; raises if there is none."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == number:
                assert "error" not in told, told
                return told["result"]
            self.events.append(told)

    def wait_for(self, method):
        """Until it has told that."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._next())

    def _next(self):
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._bytes:
            ready, _, _ = select.select([self.back], [], [], max(end - time.monotonic(), 0))
            part = os.read(self.back, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self._bytes += part
        message, _, self._bytes = self._bytes.partition(b"\0")
        return json.loads(message)

    def open(self, path, width, height, *, dark=False, media="screen"):
        """Show a file in a window of that size."""
        self.events.clear()
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", media=media, features=[scheme])
        phone = width < 600
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.ask("Page.navigate", url=path.absolute().as_uri())
        self.wait_for("Page.loadEventFired")

    def value(self, expression):
        """What an expression of JavaScript gives."""
        answer = self.ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def told(self, *methods):
        """The events of these kinds since the page was opened."""
        return [event for event in self.events if event.get("method") in methods]


def installed_browser():
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@contextlib.contextmanager
def running(folder):
    """A browser with an empty profile in that folder."""
    there, to = os.pipe()
    back, here = os.pipe()
    command = [sys.executable, "-c", START, str(there), str(here)]
    command += [installed_browser(), *FLAGS, f"--user-data-dir={folder}"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, pass_fds=(there, here), stdout=log, stderr=log)
    os.close(there)
    os.close(here)
    try:
        browser = Browser(to, back)
        page = browser.ask("Target.createTarget", url="about:blank")["targetId"]
        browser.session = browser.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            browser.ask(f"{domain}.enable")
        yield browser
        browser.session = ""
        browser.ask("Browser.close")
        process.wait(PATIENCE)
    finally:
        process.kill()
        process.wait()
        os.close(to)
        os.close(back)


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    if sys.platform == "win32":
        pytest.skip("the browser is told what to do through inherited file descriptors, which Windows does not have")
    if installed_browser() is None:
        pytest.skip(f"no browser is installed (one of {', '.join(BROWSERS)}): apt-get install chromium")
    with running(tmp_path_factory.mktemp("browser")) as page:
        yield page


SIZES = {"phone": (360, 800), "desk": (1280, 900)}
UNFOLD = "document.querySelectorAll('details').forEach(details => details.open = true)"
# What reaches out of the window, but for what can be moved sideways, is clipped on purpose, or waits for the keyboard.
OUTSIDE = """
[...document.querySelectorAll('body *')].filter(element => {
  if (element.closest('.wide, .skip, caption, .stack thead, .unseen, defs')) return false;
  const box = element.getBoundingClientRect();
  return box.width > 0 && (box.right > document.documentElement.clientWidth + 1 || box.left < -1);
}).map(element => element.tagName + ' ' + element.textContent.slice(0, 60))
"""
# Text that is wider than the box that it stands in, where that box hides the rest.
CUT = """
[...document.querySelectorAll('body *')].filter(element => {
  if (element.closest('.wide, svg, caption, .stack thead, .unseen')) return false;
  const style = getComputedStyle(element);
  return style.overflowX !== 'visible' && element.scrollWidth > element.clientWidth + 1;
}).map(element => element.tagName + '.' + element.className)
"""
SMALL = "Math.min(...[...document.querySelectorAll('svg text')].map(text => text.getBoundingClientRect().height))"


@pytest.fixture
def shown(browser, page, tmp_path):
    """Open a report by the name of its study."""

    def show(name, size="desk", **how):
        path = tmp_path / "report.html"
        path.write_text(page(name), encoding="utf-8")
        browser.open(path, *SIZES[size], **how)
        return browser

    return show


@pytest.mark.parametrize("size", SIZES)
def test_nothing_is_cut_off_complained_of_or_asked_for(size, any_name, shown):
    browser = shown(any_name, size)
    for _ in ("folded", "unfolded"):
        wide, window = browser.value("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert window == SIZES[size][0]
        assert wide <= window
        assert browser.value(OUTSIDE) == []
        assert browser.value(CUT) == []
        browser.value(UNFOLD)
    assert browser.told("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded") == []
    asked = [event["params"]["request"]["url"] for event in browser.told("Network.requestWillBeSent")]
    assert [url for url in asked if not url.startswith(("file:///", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1


def test_the_letters_of_pictures_can_be_read_on_a_phone(shown):
    # 10 pixels of a letter's size are 11 or more of its line's height in any font.
    assert shown("regression", "phone").value(SMALL) >= 9.99  # ten, but for parts of a pixel


def test_darkness_turns_page_and_pictures(shown):
    colours = """['body', 'svg text'].map(where => {
      const style = getComputedStyle(document.querySelector(where)); return [style.backgroundColor, style.fill];
    })"""
    (light_paper, _), (_, light_ink) = shown("regression").value(colours)
    (dark_paper, _), (_, dark_ink) = shown("regression", dark=True).value(colours)
    assert (light_paper, dark_paper) == ("rgb(255, 255, 255)", "rgb(20, 24, 27)")
    assert (light_ink, dark_ink) == ("rgb(27, 33, 38)", "rgb(232, 236, 238)")


def test_paper_is_white_and_has_the_tables(shown):
    browser = shown("regression", dark=True, media="print")
    assert browser.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.value("getComputedStyle(document.querySelector('nav')).display") == "none"
    if browser.value("CSS.supports('selector(::details-content)')"):  # browsers of 2025 and later
        assert browser.value("document.querySelector('details table').checkVisibility()")
    assert len(browser.ask("Page.printToPDF")["data"]) > 10_000


def test_the_keyboard_gets_everywhere(shown):
    browser = shown("multiclass")

    def press(key, code):
        for kind in ("keyDown", "keyUp"):
            text = {"text": "\r"} if key == "Enter" and kind == "keyDown" else {}
            browser.ask("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code, **text)

    press("Tab", 9)
    focused = "document.activeElement.className + document.activeElement.getBoundingClientRect().left"
    assert browser.value(focused).startswith("skip")
    assert float(browser.value(focused).removeprefix("skip")) >= 0  # it comes into view
    press("Enter", 13)
    assert browser.value("location.hash") == "#summary"
    reached = []
    for _ in range(30):
        press("Tab", 9)
        reached.append(browser.value("document.activeElement.tagName"))
        if reached[-1] == "SUMMARY" and "SUMMARY" not in reached[:-1]:
            assert browser.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"
            press("Enter", 13)
            assert browser.value("document.activeElement.parentElement.open")
    assert reached.count("SUMMARY") >= browser.value("document.querySelectorAll('summary').length")
