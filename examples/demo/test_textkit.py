import unittest

import textkit


class TextKit(unittest.TestCase):
    def test_shout(self):
        self.assertEqual(textkit.shout("hello"), "HELLO!")


if __name__ == "__main__":
    unittest.main()
