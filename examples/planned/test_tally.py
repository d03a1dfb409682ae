"""python3 -m unittest"""

from __future__ import annotations

import unittest
from datetime import date

import tally

LOG = ["# my hours\n", "2026-03-02,garden,1.5\n", "2026-03-03,house,2\n", "2026-03-10,garden,0.5\n"]


class TallyTest(unittest.TestCase):
    def test_a_log_is_read(self) -> None:
        self.assertEqual(tally.read(LOG)[0], tally.Entry(date(2026, 3, 2), "garden", 1.5))

    def test_a_broken_line_is_named(self) -> None:
        with self.assertRaisesRegex(ValueError, "line 2"):
            tally.read([LOG[0], "tomorrow,garden,1\n"])

    def test_hours_are_added_up(self) -> None:
        self.assertEqual(tally.totals(tally.read(LOG)), {"garden": 2.0, "house": 2.0})


if __name__ == "__main__":
    unittest.main()
