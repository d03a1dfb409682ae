import unittest

import cart
import price
import receipt

ITEMS = [("tea", 450), ("honey", 800)]


class Shop(unittest.TestCase):
    def test_price(self):
        self.assertIn("12.50", price.price(1250))

    def test_total(self):
        self.assertEqual(cart.total(ITEMS), 1250)

    def test_receipt(self):
        self.assertIn("to pay: 12.50", receipt.receipt(ITEMS))


if __name__ == "__main__":
    unittest.main()
