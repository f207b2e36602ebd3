"""``abstain completion``."""

import click

SHELLS = "bash", "zsh", "fish"


@click.command(short_help="Print what makes a shell complete commands and options.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    """Print what makes a shell complete commands, options, losses and files.

    \b
    Examples, once and for good:
      bash   abstain completion bash >> ~/.bashrc
      zsh    abstain completion zsh >> ~/.zshrc
      fish   abstain completion fish > ~/.config/fish/completions/abstain.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    click.echo(found(click.get_current_context().find_root().command, {}, "abstain", "_ABSTAIN_COMPLETE").source())
