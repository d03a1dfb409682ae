"""Known programs: test runners, script runners, programs that display text, and those that do neither."""


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


DIRECT = {
    "pytest": "pytest",
    "py.test": "pytest",
    "ptw": "pytest",
    "pytest-watch": "pytest",
    "pytest-watcher": "pytest",
    "nose2": "unittest",
    "nosetests": "unittest",
    "stestr": "unittest",
    "trial": "unittest",
    "behave": "behave",
    "robot": "robot",
    "pabot": "robot",
    "jest": "jest",
    "jest-cli": "jest",
    "vitest": "vitest",
    "mocha": "mocha",
    "_mocha": "mocha",
    "ava": "ava",
    "tap": "tap",
    "tape": "tap",
    "borp": "node",
    "jasmine": "jasmine",
    "karma": "karma",
    "uvu": "uvu",
    "cucumber": "cucumber",
    "cucumber-js": "cucumber",
    "bats": "bats",
    "shellspec": "shellspec",
    "prove": "prove",
    "pg_prove": "prove",
    "rspec": "rspec",
    "parallel_rspec": "rspec",
    "turbo_tests": "rspec",
    "parallel_test": "minitest",
    "minitest": "minitest",
    "phpunit": "phpunit",
    "simple-phpunit": "phpunit",
    "paratest": "phpunit",
    "pest": "pest",
    "codecept": "phpunit",
    "behat": "behat",
    "gotestsum": "go",
    "gotest": "go",
    "ginkgo": "go",
    "ctest": "ctest",
    "busted": "busted",
    "kaocha": "clojure",
    "xctest": "swift",
}

ANY_RUNNER = words(
    "tox nox wdio testcafe nightwatch qunit lab web-test-runner wtr test-storybook newman hurl run-tests runtests "
    "kahlan atoum Invoke-Pester espec xctool snforge doctest schemathesis pgtap roundup bashunit shunit2 "
    "vstest.console vstest.console.exe nunit3-console xunit.console bunit japa poku zora tapzero "
    "nunit-console phpspec infection stryker mutmut"
)

SUBCOMMANDS = {
    "go": ({"test": "go"}, ()),
    "richgo": ({"test": "go"}, ()),
    "deno": ({"test": "deno"}, ("task",)),
    "bun": ({"test": "bun"}, ("run",)),
    "mix": ({"test": "exunit", "coveralls": "exunit", "espec": "exunit"}, ()),
    "swift": ({"test": "swift"}, ()),
    "xcodebuild": ({"test": "swift", "test-without-building": "swift"}, ()),
    "dotnet": ({"test": "dotnet", "vstest": "dotnet"}, ()),
    "playwright": ({"test": "playwright"}, ()),
    "cypress": ({"run": "cypress"}, ()),
    "flutter": ({"test": "dart"}, ()),
    "dart": ({"test": "dart"}, ()),
    "stack": ({"test": "haskell"}, ()),
    "cabal": ({"test": "haskell", "v2-test": "haskell", "new-test": "haskell"}, ()),
    "bazel": ({"test": "bazel", "coverage": "bazel"}, ()),
    "bazelisk": ({"test": "bazel", "coverage": "bazel"}, ()),
    "lein": ({"test": "clojure", "midje": "clojure"}, ()),
    "meson": ({"test": "meson"}, ()),
    "zig": ({"test": "zig"}, ()),
    "forge": ({"test": "forge"}, ()),
    "crystal": ({"spec": "rspec"}, ()),
    "gleam": ({"test": "gleam"}, ()),
    "rebar3": ({"eunit": "eunit", "ct": "eunit", "proper": "eunit"}, ()),
    "terraform": ({"test": "terraform"}, ()),
    "tofu": ({"test": "terraform"}, ()),
    "rails": ({"test": "minitest", "test:system": "minitest", "test:all": "minitest", "spec": "rspec"}, ()),
    "hatch": ({"test": "pytest"}, ()),
    "dune": ({"test": "", "runtest": ""}, ()),
    "raco": ({"test": ""}, ()),
    "opa": ({"test": ""}, ()),
    "helm": ({"unittest": ""}, ()),
    "hardhat": ({"test": "mocha"}, ()),
    "truffle": ({"test": "mocha"}, ()),
    "anchor": ({"test": ""}, ()),
    "scarb": ({"test": ""}, ()),
    "ape": ({"test": "pytest"}, ()),
    "brownie": ({"test": "pytest"}, ()),
    "detox": ({"test": "jest"}, ()),
    "maestro": ({"test": ""}, ()),
    "react-scripts": ({"test": "jest"}, ()),
    "craco": ({"test": "jest"}, ()),
    "tsdx": ({"test": "jest"}, ()),
    "ng": ({"test": "", "e2e": ""}, ()),
    "stencil": ({"test": "jest"}, ()),
    "wp-scripts": ({"test-unit-js": "jest", "test-e2e": ""}, ()),
    "vue-cli-service": ({"test:unit": "", "test:e2e": ""}, ()),
    "aegir": ({"test": "mocha"}, ()),
    "sail": ({"test": "phpunit", "phpunit": "phpunit", "pest": "pest"}, ("artisan", "composer", "npm")),
    "pants": ({"test": ""}, ()),
    "buck2": ({"test": ""}, ()),
    "plz": ({"test": ""}, ()),
    "wasm-pack": ({"test": "cargo"}, ()),
    "cross": ({"test": "cargo"}, ()),
    "molecule": ({"test": "", "verify": ""}, ()),
    "kitchen": ({"test": "", "verify": ""}, ()),
    "inspec": ({"exec": ""}, ()),
    "fastlane": ({"test": "swift", "scan": "swift", "tests": "swift"}, ()),
    "storybook": ({"test": ""}, ()),
    "nimble": ({"test": ""}, ()),
    "dbt": ({"test": "dbt", "build": "dbt"}, ()),
    "spago": ({"test": ""}, ()),
    "moon": ({}, ("run",)),
    "rush": ({"test": ""}, ()),
    "heft": ({"test": "jest"}, ()),
    "ginkgo": ({"run": "go"}, ()),
    "sui": ({}, ("move",)),
    "aptos": ({}, ("move",)),
}
"""Program → its subcommands that run tests, and those that are followed by the name of a script."""

SCRIPTS = words(
    "npm yarn pnpm run-script make gmake bmake mingw32-make just task mage inv invoke doit mise nx turbo lerna rake "
    "composer npm-run-all run-s run-p concurrently ninja cmake scons ant gulp grunt moon wireit ant earthly poe "
    "pypyr duty melos bb fab"
)
"""They run scripts of a project; a name like `test:unit` says what it is."""

LOOKS = words(
    "cat bat batcat less more most head tail grep egrep fgrep zgrep rg ripgrep ag ack sed gsed awk gawk mawk cut sort "
    "uniq wc tr tee jq yq xq xmllint find fd fdfind ls exa eza tree stat file diff cmp comm colordiff delta difft gh "
    "hub glab curl wget http https journalctl dmesg strings xxd od hexdump column nl tac paste fold fmt rev pr vim vi "
    "nvim nano code open man which type whereis history sqlite3 psql mysql zcat bzcat xzcat unzip tar base64 mdcat "
    "glow tldr pbcopy pbpaste xclip read split csvlook column aws gcloud az ps top du df env printenv locate "
    "sponge ts Select-String Get-Content findstr tig mlr"
)
PRINTS = frozenset(("echo", "printf", "print"))
TRIVIALS = words(
    "cd pushd popd export set unset source . mkdir touch rm cp mv ln chmod chown true false : sleep wait trap ulimit "
    "umask alias unalias nvm date pwd exit return local declare typeset readonly kill pkill killall test [ [[ ]] for "
    "case esac in function shopt hash jobs disown bg fg clear tput stty rmdir mktemp sync shift break continue let "
    "pyenv rbenv direnv fnm conda volta whoami id hostname uname getconf nproc basename dirname realpath readlink seq "
    "deactivate activate select"
)
OTHERS = words(
    "pip pip3 pipenv poetry uv conda gem apt apt-get brew dnf yum apk pacman snap rustup cargo-clippy eslint tsc ruff "
    "flake8 pylint mypy pyright black isort prettier biome stylelint rubocop standardrb golangci-lint staticcheck "
    "gofmt goimports rustfmt clang-format clang-tidy cppcheck shellcheck shfmt hadolint yamllint markdownlint "
    "phpstan psalm phpcs php-cs-fixer ktlint detekt swiftlint swiftformat credo dialyzer bandit semgrep vulture "
    "gcc g++ clang clang++ cc c++ javac kotlinc rustc tsup esbuild webpack vite rollup parcel next nuxt bundler "
    "xo oxlint tslint standard knip depcheck pyflakes pycodestyle pydocstyle pyre pytype codespell vulture radon "
    "terraform-docs tflint actionlint cspell dprint taplo deptry ty basedpyright lint-imports patch apply_patch "
    "code2flow tokei cloc scc npm-check-updates ncu pre-commit-update git-lfs"
)
NO_TESTERS = words(
    "dropdb ssh scp rsync tmux screen useradd adduser groupadd kubectl docker podman systemctl service launchctl "
    "vagrant flyctl fly heroku supabase nslookup ping host dig telnet nc hugo idea subl virsh virtualenv su sudo "
    "passwd usermod createuser mysqladmin mongo mongosh redis-cli rabbitmqctl minikube kind k3d helmfile dropuser"
)
"""`X test` runs tests with most programs; with these, `test` is only a name."""
LISTS = words(
    "--version --help --collect-only --co --listTests --list-tests --list --no-run --showConfig --show-config --init "
    "--clearCache --clear-cache --fixtures --markers --setup-plan --dry-run --just-print --recon --list-suites "
    "--list-groups --listenvs --list-sessions --print-labels --show-only --list-tags --generate-configuration "
    "--list-tests-xml --debug-config --setup-only --cache-show --print-config --listSuites"
)
