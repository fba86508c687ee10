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


# Contrast of the last text of that selector with what is behind it.
CONTRAST = """
    const parse = text => text.match(/[\\d.]+/g).map(Number);
    const light = ([r, g, b]) => [r, g, b].map(x => x / 255).map(x => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4)
      .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
    let one = [...document.querySelectorAll(arguments[0])].pop(), under = one;
    while (parse(getComputedStyle(under).backgroundColor)[3] === 0) under = under.parentElement;
    const colour = one instanceof SVGElement ? getComputedStyle(one).fill : getComputedStyle(one).color;
    const pair = [colour, getComputedStyle(under).backgroundColor].map(parse).map(light);
    return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);"""


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

    def assert_fits_and_can_be_read(self, *texts):
        """At 1280 and 800 px, light and dark: the page is no wider than the window, numbers stay on one line, drawings can be read."""
        self.addCleanup(self.page.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.addCleanup(self.page.execute_cdp_cmd, "Emulation.setEmulatedMedia", {"features": []})
        for width in (1280, 800):
            self.page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
            self.page.execute_script("window.dispatchEvent(new Event('resize'))")
            self.assertLessEqual(*self.page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]"))
            self.assertEqual(self.page.execute_script("""const line = parseFloat(getComputedStyle(document.body).lineHeight);
                return [...document.querySelectorAll('td.n')].filter(one => !one.querySelector('small') && one.firstChild).filter(one => {
                  const text = document.createRange(); text.selectNodeContents(one);
                  return text.getBoundingClientRect().height > 1.5 * line; }).map(one => one.textContent)"""), [])
            self.assert_drawings_can_be_read()
            for scheme in ("light", "dark"):
                self.page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]})
                for css in texts:
                    self.assertGreaterEqual(self.page.execute_script(CONTRAST, css), 4.5, (scheme, css))  # WCAG 2, level AA

    def assert_no_column_is_hidden(self, *tables):
        """At 800 px."""
        self.addCleanup(self.page.execute_cdp_cmd, "Emulation.clearDeviceMetricsOverride", {})
        self.page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 800, "height": 1000, "deviceScaleFactor": 1, "mobile": False})
        for css in tables:
            self.assertLessEqual(*self.page.execute_script(
                "const one = document.querySelector(arguments[0] + ' .scroll'); return [one.scrollWidth, one.clientWidth]", css), css)
