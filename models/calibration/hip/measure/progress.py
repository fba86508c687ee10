"""One line on standard error: what runs, how far it is, how long it will take."""
import sys
import time

EVERY_S = 20  # between lines where standard error is no terminal


def clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


class Progress:
    def __init__(self, stream=sys.stderr):
        self.stream, self.last, self.width, self.begun = stream, 0.0, 0, ""

    def say(self, text, always=False):
        terminal, now = self.stream.isatty(), time.monotonic()
        topic = text.split(":")[0]
        if not always and topic == self.begun and now - self.last < (0.5 if terminal else EVERY_S):
            return
        self.begun, self.last = topic, now
        if terminal:
            self.stream.write("\r" + text.ljust(self.width))
            self.width = len(text)
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def end(self):
        if self.stream.isatty() and self.width:
            self.stream.write("\r" + " " * self.width + "\r")
            self.width = 0
