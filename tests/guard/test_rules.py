"""A project's own rules: what it allows against the guard, and what it denies beyond it."""

from __future__ import annotations

from support.guard_corpus import judge


def test_an_allowed_command_passes_and_others_do_not() -> None:
    section: dict[str, object] = {"allow": [{"program": "git", "args": "push origin *", "category": ""}]}
    assert not judge("git push origin feature", section=section).denied
    assert judge("git push backup feature", section=section).denied
    assert judge("git push origin x && rm -rf /", section=section).category == "destruction"


def test_a_rule_may_be_for_one_category_only() -> None:
    section: dict[str, object] = {"allow": [{"program": "git", "args": "push *", "category": "git-push"}]}
    assert not judge("git push origin x", section=section).denied
    assert judge("git push --force origin x", section=section).category == "git-history"


def test_a_whole_category_may_be_allowed() -> None:
    section: dict[str, object] = {"allow": [{"category": "containers"}]}
    assert not judge("docker system prune -af", section=section).denied
    assert judge("docker run --privileged x", section=section).denied


def test_what_an_allowed_program_runs_is_still_judged() -> None:
    section: dict[str, object] = {"allow": [{"program": "sudo", "args": "*", "category": "privilege"}]}
    assert not judge("sudo apt-get install -y jq", section=section).denied
    assert judge("sudo rm -rf /", section=section).category == "destruction"
    assert judge("sudo -u me sh -c 'git push'", section=section).category == "git-push"


def test_a_denied_command_is_denied_with_its_own_words() -> None:
    section: dict[str, object] = {
        "deny": [{"program": "npm", "args": "install *", "reason": "This project uses pnpm", "category": "tooling"}]
    }
    found = judge("npm install left-pad", section=section)
    assert (found.denied, found.category) == (True, "tooling")
    assert found.reason.startswith("This project uses pnpm: `npm install left-pad`.")
    assert not judge("npm test", section=section).denied
    assert judge("bash -c 'npm install x'", section=section).denied


def test_a_denied_command_is_denied_although_it_looks_harmless_at_once() -> None:
    assert not judge("ls -la").denied
    assert judge("ls -la", section={"deny": ["ls"]}).category == "project"


def test_rules_may_be_plain_text() -> None:
    assert not judge("git push origin main", section={"allow": ["git push origin main"]}).denied
    assert judge("git push origin main2", section={"allow": ["git push origin main"]}).denied
    assert judge("make deploy", section={"deny": ["make deploy*"]}).denied


def test_pushing_can_be_allowed_as_such() -> None:
    section: dict[str, object] = {"push": True}
    assert not judge("git push -u origin HEAD", section=section).denied
    assert judge("git push --force", section=section).category == "git-history"


def test_a_program_is_meant_by_its_name_or_by_its_path() -> None:
    section: dict[str, object] = {"deny": [{"program": "*/deploy.sh"}, {"program": "kubectl", "args": "*prod*"}]}
    assert judge("./scripts/deploy.sh now", section=section).denied
    assert judge("/usr/bin/kubectl get pods -n prod", section=section).denied
    assert not judge("kubectl get pods -n dev", section=section).denied


def test_rules_of_another_shape_are_passed_over() -> None:
    section: dict[str, object] = {"allow": [3, None, {}, {"args": "x"}, ""], "deny": "git"}
    assert judge("git push", section=section).denied
    assert not judge("git status", section=section).denied
