"""`wirecheck completion`: the lines a shell needs to complete subcommands and options.

Knows: which shells click can serve. Refuses to know what is completed: click asks the commands themselves.
"""

import click

SHELLS = ("bash", "zsh", "fish")


@click.command(short_help="What makes your shell complete all this.")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print what makes SHELL complete wirecheck's subcommands and options.

    \b
    Examples:
      wirecheck completion bash >> ~/.bashrc
      wirecheck completion zsh >> ~/.zshrc
      wirecheck completion fish > ~/.config/fish/completions/wirecheck.fish
    """
    from click.shell_completion import get_completion_class

    served = get_completion_class(shell)
    assert served is not None
    click.echo(served(ctx.find_root().command, {}, "wirecheck", "_WIRECHECK_COMPLETE").source())
