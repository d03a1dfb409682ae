# Homebrew formula. scripts/release fills in nothing here: `brew bump-formula-pr` sets url and sha256 after a release,
# and `brew update-python-resources ralph-loop-engine` the resources.
class RalphLoopEngine < Formula
  include Language::Python::Virtualenv

  desc "Runs a coding agent over a list of stories, and believes checks instead of claims"
  homepage "https://pypi.org/project/ralph-loop-engine/"
  url "https://files.pythonhosted.org/packages/source/r/ralph-loop-engine/ralph_loop_engine-0.1.0.tar.gz"
  sha256 "0000000000000000000000000000000000000000000000000000000000000000"
  license "MIT"

  depends_on "rust" => :build # for minijinja
  depends_on "libyaml"
  depends_on "python@3.13"

  # resources

  def install
    virtualenv_install_with_resources
    generate_completions_from_executable(bin/"ralph", "config", "completion")
    man1.install Dir[libexec/"share/man/man1/*.1"]
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/ralph --version")
    system "git", "init", "-q"
    system bin/"ralph", "init", "demo", "--agent", "scripted"
    assert_match "demo", shell_output("#{bin}/ralph status")
  end
end
