"""Whether a change is about what the story names."""

from __future__ import annotations

import pytest

from ralph.proof.story_words import is_about, subjects

NAMED = "Add a discount\n`discount(cents, percent)` takes a percentage off an amount."


@pytest.mark.parametrize(
    ("story", "added", "wanted"),
    [
        (NAMED, "def discount(cents, percent):\n    return 1\n", True),
        (NAMED, "def rebate(amount):\n    return 1\n", False),
        ("Support --dry-run in the importer", "parser.add_argument('--dry-run')", True),
        ("Support --dry-run in the importer", "parser.add_argument('--verbose')", False),
        ("pluralize('cactus') returns 'cacti'", '    ("cactus", "cacti"),', True),
        ("pluralize('cactus') returns 'cacti'", '    ("wolf", "wolves"),', False),
        ("Bulk orders get a rebate", "def colour(tone):", True),
    ],
)
def test_a_change_is_about_what_the_story_names(story: str, added: str, wanted: bool) -> None:
    assert is_about(story, added) is wanted


def test_only_code_is_a_subject() -> None:
    assert subjects("`a_b(x)` and camelCase and plain words, see the README") == {"a_b", "camelCase"}


@pytest.mark.parametrize(
    "added",
    [
        "def discount(cents, percent):",
        "exports.discount = (cents) => 0;",
        "assert map(discount, prices)",
        "{ discount }",
    ],
)
def test_what_the_story_calls_is_called_or_defined(added: str) -> None:
    assert is_about("`discount(cents, percent)` takes a percentage off.", added)


@pytest.mark.parametrize(
    "added",
    [
        '"""How a discount is shown."""\ndef discount_label(percent):',
        "shop/discount.py\nimport shop.discount",
        "# discount",
    ],
)
def test_a_comment_or_a_file_name_is_not_what_the_story_calls(added: str) -> None:
    assert not is_about("`discount(cents, percent)` takes a percentage off.", added)
