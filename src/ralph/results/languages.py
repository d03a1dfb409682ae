"""Interpreters and build tools whose arguments tell whether they run tests."""

from ralph.results.vocabulary import (
    LISTING,
    LISTS,
    LOOK,
    OTHER,
    OTHERS,
    PYTHON_MODULES,
    RUNNERS,
    TEST,
    UNKNOWN,
    Again,
    Kind,
    base,
    is_testy,
    is_testy_path,
    pieces,
)

_R_TESTS = ("testthat", "devtools::test", "test_dir", "test_file", "tinytest", "CMD check", "test()")


def kind_of(name: str, rest: list[str]) -> Kind | Again | None:
    """None: it is none of these."""
    text = " ".join(rest)
    match name:
        case "py":
            return _python(rest)
        case "node" | "nodejs" | "tsx" | "ts-node" | "esno" | "babel-node" | "electron":
            return _node(rest)
        case "cargo":
            return _cargo(rest)
        case "mvn" | "mvnw" | "mvnd":
            return _maven(rest)
        case "gradle" | "gradlew":
            return _gradle(rest)
        case "php":
            return _php(rest)
        case "ruby" | "jruby":
            return _ruby(rest)
        case "perl":
            edits = any(word.startswith("-") and set(word[1:]) & set("np") for word in rest)
            return (TEST, "tap") if any(word.endswith(".t") for word in rest) else (LOOK if edits else UNKNOWN, "")
        case "julia":
            is_test = any("Pkg.test" in word or base(word) == "runtests.jl" for word in rest)
            return (TEST, "julia") if is_test else _by_path(rest, "julia")
        case "R" | "Rscript":
            return (TEST, "testthat") if any(one in text for one in _R_TESTS) else _by_path(rest, "testthat")
        case "sbt" | "mill":
            tasks = [
                word.split()[0].replace("/", ".").replace(":", ".").split(".")[-1] for word in rest if word.strip()
            ]
            verbs = ("test", "testOnly", "testQuick", "testLocal")
            return (TEST, "sbt") if any(task in verbs for task in tasks) else (UNKNOWN, "")
        case "clj" | "clojure":
            return (TEST, "clojure") if "test" in text or "kaocha" in text else (UNKNOWN, "")
        case "java":
            return (TEST, "junit") if "junit" in text.lower() or "testng" in text.lower() else (UNKNOWN, "")
        case "runhaskell" | "runghc":
            return _by_path(rest, "haskell")
        case "tclsh" | "lua" | "luajit" | "sbcl" | "guile" | "racket" | "octave" | "escript" | "groovy" | "swipl":
            return _by_path(rest, "")
    return _python(rest) if name.startswith(("python", "pypy")) else None


def _python(rest: list[str]) -> Kind | Again:
    at = 0
    while at < len(rest) and rest[at].startswith("-") and rest[at] not in ("-m", "-c"):
        at += 2 if rest[at] in ("-W", "-X") else 1
    if at >= len(rest) or rest[at] == "-c":
        return UNKNOWN, ""
    word, after = rest[at], rest[at + 1 :]
    if word == "-m":
        return _python_module(after[0], after[1:]) if after else (UNKNOWN, "")
    name = base(word)
    if name in ("manage.py", "django-admin", "setup.py"):
        return (TEST, "unittest") if after[:1] == ["test"] else (UNKNOWN, "")
    if RUNNERS.get(name):
        return [name, *after]
    return (TEST, "python") if is_testy_path(word) or after[:1] == ["test"] else (UNKNOWN, "")


def _python_module(module: str, options: list[str]) -> Kind | Again:
    if module == "coverage":
        if options[:1] != ["run"]:
            return OTHER, ""
        return _python([one for one in options[1:] if one == "-m" or not one.startswith("-")])
    if module in ("json.tool", "pydoc", "zipfile", "tarfile", "http.server", "base64"):
        return LOOK, ""
    if module in ("tox", "nox"):
        return [module, *options]
    if module in PYTHON_MODULES:
        lists = any(one.partition("=")[0] in LISTS or one == "-h" for one in options)
        return LISTING if lists else TEST, PYTHON_MODULES[module]
    if module == "django" and "test" in options:
        return TEST, "unittest"
    return (TEST, "") if is_testy(module) else (OTHER, "") if module in OTHERS else (UNKNOWN, "")


def _node(rest: list[str]) -> Kind | Again:
    if any(word == "--test" for word in rest):
        return TEST, "node"
    scripts = [word for word in rest if not word.startswith("-")]
    if not scripts or any(word in ("-e", "-p", "--eval", "--print") for word in rest):
        return UNKNOWN, ""
    for word in scripts[:2]:
        name = base(word)
        for ending in (".js", ".mjs", ".cjs"):
            name = name.removesuffix(ending)
        if "node_modules" in word and (RUNNERS.get(name) or name in ("react-scripts", "playwright", "cypress")):
            return [name, *rest[rest.index(word) + 1 :]]
    return (TEST, "") if is_testy_path(scripts[0]) else (UNKNOWN, "")


def _cargo(rest: list[str]) -> Kind:
    names = [word for word in rest if not word.startswith(("-", "+"))]
    verb = names[0] if names else ""
    if verb in ("test", "t", "nextest", "tarpaulin", "llvm-cov", "careful"):
        return TEST, "cargo"
    if verb in ("insta", "miri", "hack", "mutants", "make", "xtask", "leptos"):
        return (TEST, "cargo") if any(is_testy(word) for word in names[1:3]) else (UNKNOWN, "")
    return (UNKNOWN, "") if verb in ("run", "bench") else (OTHER, "")


def _maven(rest: list[str]) -> Kind:
    if any(word.startswith(("-DskipTests", "-Dmaven.test.skip")) and not word.endswith("=false") for word in rest):
        return OTHER, ""
    tests = ("test", "verify", "integration-test", "failsafe:integration-test", "failsafe:verify")
    goals = [word for word in rest if not word.startswith("-")]
    is_test = any(word in tests or "surefire" in word or word.endswith(":test") for word in goals)
    return (TEST, "maven") if is_test else (UNKNOWN, "")


def _gradle(rest: list[str]) -> Kind:
    valued = ("-x", "--exclude-task", "--tests", "-p", "-b", "-c", "-I")
    values = {rest[at + 1] for at, word in enumerate(rest[:-1]) if word in valued}
    tasks = [pieces(word) for word in rest if not word.startswith("-") and word not in values]
    builds = ("assemble", "compile", "bundle", "package", "process", "generate", "lint", "merge", "clean")
    tasks = [task for task in tasks if task and not set(builds) & set(task) and task[-1] != "classes"]
    if any(task[-1] == "check" or "test" in task or "tests" in task for task in tasks):
        return LISTING if "--dry-run" in rest or "-m" in rest else TEST, "gradle"
    return UNKNOWN, ""


def _php(rest: list[str]) -> Kind | Again:
    scripts = [word for word in rest if not word.startswith("-")]
    name = base(scripts[0]) if scripts else ""
    if name in ("artisan", "spark", "console") and scripts[1:2] in (["test"], ["dusk"]):
        return TEST, "phpunit"
    return [name, *rest[rest.index(scripts[0]) + 1 :]] if RUNNERS.get(name) else _by_path(rest, "phpunit")


def _ruby(rest: list[str]) -> Kind | Again:
    scripts = [word for word in rest if not word.startswith("-")]
    if scripts and base(scripts[0]) in ("rspec", "rake", "rails"):
        return [base(scripts[0]), *rest[rest.index(scripts[0]) + 1 :]]
    return _by_path(rest, "ruby")


def _by_path(rest: list[str], framework: str) -> Kind:
    first = next((word for word in rest if not word.startswith(("-", "+"))), "")
    return (TEST, framework) if first and is_testy_path(first) else (UNKNOWN, "")
