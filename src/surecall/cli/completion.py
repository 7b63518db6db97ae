"""`surecall completion`: the script that lets a shell ask for suggestions."""

import click
from click.shell_completion import get_completion_class

from .flags import pass_output
from .output import Output


@click.command
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@pass_output
def completion(output: Output, shell: str) -> None:
    """Print the completion of a shell; with bash: eval "$(surecall completion bash)"."""
    from .main import cli

    made = get_completion_class(shell)
    assert made is not None
    script = made(cli, {}, "surecall", "_SURECALL_COMPLETE").source()
    if output.json:
        output.data({"type": "completion", "shell": shell, "script": script})
        return
    output.stdout.write(script + "\n")
