"""A headless Chromium that is asked over two pipes (the DevTools protocol, --remote-debugging-pipe)."""
import base64
import json
import os
import select
import subprocess
import tempfile
import time

ANSWER_SECONDS = 120  # What a loaded machine may take; never a measure of anything.


class Browser:
    def __init__(self, program):
        asks, self.to = os.pipe()
        self.answers, gives = os.pipe()
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

        def pipes():  # The browser reads at 3 and writes at 4.
            a, b = os.dup(asks), os.dup(gives)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--user-data-dir=" + self.folder.name, "--remote-debugging-pipe",
             "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(asks)
        os.close(gives)
        self.number = 0
        self.rest = b""
        self.events = []
        self.session = None
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(domain + ".enable")

    def receive(self, seconds):
        end = time.monotonic() + seconds
        while b"\0" not in self.rest:
            if not select.select([self.answers], [], [], max(0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            got = os.read(self.answers, 1 << 16)
            if not got:
                raise EOFError("the browser has ended")
            self.rest += got
        line, self.rest = self.rest.split(b"\0", 1)
        return json.loads(line)

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        return self.number

    def note(self, event):
        self.events.append(event)
        if event.get("method") == "Page.javascriptDialogOpening":  # Nothing goes on before it ends.
            self.send("Page.handleJavaScriptDialog", accept=False)

    def ask(self, method, **parameters):
        number = self.send(method, **parameters)
        while True:
            answer = self.receive(ANSWER_SECONDS)
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(method + ": " + answer["error"]["message"])
                return answer["result"]
            self.note(answer)

    def open(self, path, width, height=900, scheme="light"):
        """Shows a file in a window of this size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=width < 500)
        self.ask("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.ask("Page.navigate", url="file://" + os.path.abspath(path))
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.note(self.receive(ANSWER_SECONDS))
        # Two frames: what waits for the page to be laid out has then run.
        self.run("new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))")

    def run(self, script):
        """The value of an expression, promises awaited."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True,
                          awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"].get("exception")))
        return answer["result"].get("value")

    def press(self, key):
        for kind in ("keyDown", "keyUp"):
            text = {"text": key} if len(key) == 1 and kind == "keyDown" else {}
            self.ask("Input.dispatchKeyEvent", type=kind, key=key, **text)

    def complaints(self):
        """What the page said on the console, threw, or asked of a network, since it was opened."""
        found = []
        for event in self.events:
            method, value = event.get("method"), event.get("params", {})
            if method == "Runtime.consoleAPICalled":
                found.append("console: " + str(value["args"]))
            elif method == "Runtime.exceptionThrown":
                found.append("exception: " + str(value["exceptionDetails"]))
            elif method == "Log.entryAdded":
                found.append("log: " + value["entry"]["text"])
            elif method == "Page.javascriptDialogOpening":
                found.append("dialog: " + value["message"])
            elif method == "Network.requestWillBeSent":
                url = value["request"]["url"]
                if not url.startswith("file://") or value.get("type") != "Document":
                    found.append("asked for: " + url)
        return found

    def picture(self, path, whole=False):
        shot = self.ask("Page.captureScreenshot", format="png", captureBeyondViewport=whole,
                        **({"clip": {**self.run("({x: 0, y: 0, width: innerWidth, height: Math.min("
                                               "document.documentElement.scrollHeight, 6000),"
                                               "scale: 1})")}} if whole else {}))
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))

    def close(self):
        self.session = None
        try:
            self.ask("Browser.close")
        except (EOFError, OSError, TimeoutError):
            pass
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.folder.cleanup()
