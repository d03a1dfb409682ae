"""PowerShell 5.1 and 7: one argument completer over tables."""

from __future__ import annotations

from collections.abc import Iterable

from ralph.cli.grammar import Command, Value

_SCRIPT = """\
# Completion of ralph for PowerShell, written by `ralph config completion powershell`.

$ordinal = [System.StringComparer]::Ordinal
$global:RalphCommands = [System.Collections.Hashtable]::new($ordinal)
$global:RalphOlder = [System.Collections.Hashtable]::new($ordinal)
$global:RalphOptions = [System.Collections.Hashtable]::new($ordinal)
# The kind of an option's value or an argument: text, file, folder, story, or the choices.
$global:RalphValues = [System.Collections.Hashtable]::new($ordinal)
__TABLES__

Register-ArgumentCompleter -Native -CommandName ralph -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $path = ''
    $flag = ''
    $count = 0
    foreach ($element in $commandAst.CommandElements | Select-Object -Skip 1) {
        if ($element.Extent.StartOffset -ge $cursorPosition) { break }
        if ($wordToComplete -and $element.Extent.EndOffset -ge $cursorPosition) { break }
        $word = $element.Extent.Text
        $longer = "$path $word".Trim()
        if ($flag) {
            $flag = ''
        } elseif ($word.StartsWith('-')) {
            if ($global:RalphValues.ContainsKey("$path $word")) { $flag = $word }
        } elseif ($global:RalphCommands[$path] -ccontains $word) {
            $path = $longer
            $count = 0
        } elseif (-not $path -and $global:RalphOlder.ContainsKey($word)) {
            $path = $global:RalphOlder[$word]
        } else {
            $count += 1
        }
    }
    if ($flag) {
        $offers = @($global:RalphValues["$path $flag"])
    } elseif ($wordToComplete.StartsWith('-')) {
        $offers = @($global:RalphOptions[$path])
    } else {
        $offers = @()
        if ($count -eq 0) { $offers += $global:RalphCommands[$path] }
        $place = '{0} #{1}' -f $path, ($count + 1)
        if (-not $global:RalphValues.ContainsKey($place)) { $place = '{0} #more' -f $path }
        if ($global:RalphValues.ContainsKey($place)) { $offers += $global:RalphValues[$place] }
    }
    foreach ($offer in $offers) {
        switch -CaseSensitive ($offer) {
            '<text>' { }
            '<file>' { [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete) }
            '<folder>' {
                [System.Management.Automation.CompletionCompleters]::CompleteFilename($wordToComplete) |
                    Where-Object ResultType -EQ 'ProviderContainer'
            }
            '<story>' {
                & ralph task list --ids 2>$null |
                    Where-Object { $_ -cmatch '^[A-Za-z0-9._-]+$' -and $_.StartsWith($wordToComplete) }
            }
            default { if ($offer -and $offer.StartsWith($wordToComplete)) { $offer } }
        }
    }
}
"""


def script(ralph: Command) -> str:
    lines = []
    for command in ralph.family():
        path = " ".join(command.path)
        lines += [f"$global:RalphOlder[{_quote(name)}] = {_quote(path)}" for name in command.older]
        if command.subcommands:
            lines.append(_entry("Commands", path, (sub.path[-1] for sub in command.subcommands)))
        lines.append(_entry("Options", path, (flag for option in command.options for flag in option.flags)))
        for option in command.options:
            if option.value:
                lines += [_entry("Values", f"{path} {flag}", _offer(option.value)) for flag in option.flags]
        for place, argument in enumerate(command.arguments, start=1):
            name = "more" if argument.repeats else str(place)
            lines.append(_entry("Values", f"{path} #{name}", _offer(argument.value)))
    return _SCRIPT.replace("__TABLES__", "\n".join(lines))


def _entry(table: str, key: str, words: Iterable[str]) -> str:
    return f"$global:Ralph{table}[{_quote(key)}] = @({', '.join(map(_quote, words))})"


def _offer(value: Value) -> tuple[str, ...]:
    """The angle brackets keep a kind from being taken for a choice of that name."""
    return value.choices or (f"<{value.kind.value}>",)


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
