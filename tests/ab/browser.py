# SPDX-License-Identifier: Apache-2.0
"""A browser that a test looks through: Chromium without a window, told by the DevTools protocol over two pipes.

Only what a test of one page on disk needs: its width, light or dark, what it loads, complains of and
looks like.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")

# For the browser's start, and for each answer.
TIME_LIMIT = 90


def find():
    """The browser's path, or None."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    return None


class Browser:
    """One page in a browser of its own, which ends with close()."""

    def __init__(self, path):
        self.number = 0
        self.events = []
        self.buffer = b""
        self.profile = tempfile.mkdtemp(prefix="cudapolicy-browser-")
        # The browser reads commands from descriptor 3 and writes to descriptor 4.
        command_read, self.command_write = os.pipe()
        self.answer_read, answer_write = os.pipe()
        arguments = [path, "--headless", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run",
                     "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars",
                     f"--user-data-dir={self.profile}", "about:blank"]
        if os.getuid() == 0:
            arguments.insert(1, "--no-sandbox")

        environment = {name: value for name, value in os.environ.items()
                       if name not in ("LD_PRELOAD", "LD_LIBRARY_PATH")}
        # A shell puts them there: it does no harm to descriptors of this process.
        shell = f'exec 3<&{command_read} 4>&{answer_write}; exec "$@"'
        self.process = subprocess.Popen(["bash", "-c", shell, "bash", *arguments], env=environment,
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, start_new_session=True,
                                        pass_fds=(command_read, answer_write))
        os.close(command_read)
        os.close(answer_write)
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def receive(self, limit):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answer_read], [], [], max(0, limit - time.monotonic()))
            chunk = os.read(self.answer_read, 1 << 20) if ready else b""
            if not chunk:
                raise RuntimeError("the browser does not answer" if not ready else "the browser ended")
            self.buffer += chunk
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def ask(self, method, **parameters):
        """Sends a command and returns its result; events that come before it are kept."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.command_write, data):]
        limit = time.monotonic() + TIME_LIMIT
        while True:
            answer = self.receive(limit)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method):
        limit = time.monotonic() + TIME_LIMIT
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self.receive(limit))

    def open(self, path, width=1280, height=900, scheme="light"):
        """Loads a file; what happens meanwhile is in complaints() and requests()."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                 mobile=False)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.ask("Page.navigate", url="file://" + path)
        self.wait_for("Page.loadEventFired")

    def evaluate(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def complaints(self):
        """What the page had the console say: errors, warnings, exceptions, refusals of the policy."""
        self.evaluate("0")  # events before it have come
        return [event for event in self.events
                if event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled",
                                           "Log.entryAdded")]

    def requests(self):
        """Everything that was asked for, by its address."""
        self.evaluate("0")
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def screenshot(self, path=None):
        """The whole page as PNG."""
        data = base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        if path:
            with open(path, "wb") as file:
                file.write(data)
        return data

    def close(self):
        for descriptor in (self.command_write, self.answer_read):
            os.close(descriptor)
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)
