"""What the tests of pages share: Chromium without a window, and what is wrong with the texts of a drawing. Skipped where the
browser, its driver or Selenium is missing (scripts/setup --all)."""
import os
import shutil
import tempfile
import unittest

try:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service
except ImportError:
    webdriver = None

MISSING = [name for name, there in (("chromium", shutil.which("chromium")), ("chromedriver", shutil.which("chromedriver")),
                                    ("python3-selenium", webdriver)) if not there]

# Texts of every drawing that are not wholly inside it, and pairs that cover each other by more than a pixel.
TEXTS_OF_DRAWINGS = """
    const found = [];
    for (const svg of document.querySelectorAll('svg')) {
      const frame = svg.getBoundingClientRect();
      if (!frame.width) continue;
      const texts = [...svg.querySelectorAll('text')].filter(one => one.textContent.trim());
      const boxes = texts.map(one => one.getBoundingClientRect());
      boxes.forEach((a, i) => {
        const name = texts[i].textContent.trim();
        if (a.left < frame.left - 1 || a.right > frame.right + 1 || a.top < frame.top - 1 || a.bottom > frame.bottom + 1)
          found.push('outside: ' + name);
        if (texts[i].getCTM().b) return;  // the box of a slanted text is larger than the text
        boxes.slice(i + 1).forEach((b, j) => {
          if (!texts[i + 1 + j].getCTM().b && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
              Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 4)
            found.push(`one on the other: ${name}, ${texts[i + 1 + j].textContent.trim()}`);
        });
      });
    }
    return [document.querySelectorAll('svg text').length, found];"""


@unittest.skipIf(MISSING, "not installed: " + ", ".join(MISSING))
class Browser(unittest.TestCase):
    """For a class to inherit beside its own TestCase: `cls.page` is the browser."""

    @classmethod
    def setUpClass(cls):
        os.environ["no_proxy"] = "localhost,127.0.0.1"
        profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        cls.addClassCleanup(profile.cleanup)
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium")
        for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "window-size=1280,1000",
                         "disable-background-networking", "user-data-dir=" + profile.name):
            options.add_argument("--" + argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        cls.page = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
        cls.addClassCleanup(cls.page.quit)

    def assert_drawings_can_be_read(self):
        texts, wrong = self.page.execute_script(TEXTS_OF_DRAWINGS)
        self.assertGreater(texts, 0)
        self.assertEqual(wrong, [])
