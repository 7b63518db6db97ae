"""The command `surecall`, and `python -m surecall`."""

from surecall.cli import cli

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit code."""
    cli(prog_name="surecall")


if __name__ == "__main__":
    main()
