# Nix expression: nix-build packaging/default.nix, or callPackage it.
{ pkgs ? import <nixpkgs> { } }:

let
  python = pkgs.python3Packages;
  source = builtins.readFile ../src/ralph/__init__.py;
  version = builtins.head (builtins.match ".*__version__ = \"([^\"]+)\".*" source);
in
python.buildPythonApplication {
  pname = "ralph-loop-engine";
  inherit version;
  pyproject = true;
  src = pkgs.lib.cleanSource ../.;

  build-system = with python; [ hatchling msgspec pyyaml ];
  dependencies = with python; [ minijinja msgspec pyyaml tree-sitter tree-sitter-typescript ];

  nativeBuildInputs = [ pkgs.installShellFiles ];
  postInstall = ''
    for shell in bash zsh fish; do
      $out/bin/ralph config completion $shell > ralph.$shell
    done
    installShellCompletion --cmd ralph --bash ralph.bash --zsh ralph.zsh --fish ralph.fish
  '';
  makeWrapperArgs = [ "--suffix" "PATH" ":" (pkgs.lib.makeBinPath [ pkgs.git ]) ];

  pythonImportsCheck = [ "ralph" ];

  meta = {
    description = "Runs a coding agent over a list of stories, and believes checks instead of claims";
    license = pkgs.lib.licenses.mit;
    mainProgram = "ralph";
  };
}
