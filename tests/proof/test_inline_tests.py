from __future__ import annotations

from ralph.proof.restore import count_inline_tests

LEGACY = b"""pub fn f() {}

#[cfg(test)]
mod tests {
    #[test]
    fn a() {}

    #[tokio::test]
    async fn b() {}
}
"""


def test_tests_inside_a_source_file_are_counted() -> None:
    assert count_inline_tests("src/legacy.rs", LEGACY) == 2
    assert count_inline_tests("tests/legacy.rs", LEGACY) == 0
    assert count_inline_tests("src/legacy.py", LEGACY) == 0
