"""The command as a process: what it loads, and what it leaves behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(sys.executable).parent / "surecall"
HEAVY = {"aiohttp", "jsonschema_rs", "rich", "surecall.loop", "surecall.tools"}


def launch(*words: str | Path, stdin: str = "") -> subprocess.CompletedProcess[str]:
    """Run a process to its end."""
    return subprocess.run(
        words, capture_output=True, text=True, input=stdin, timeout=50, check=False
    )


@pytest.mark.parametrize("words", [("--version",), ("--help",), ("--json", "--version")])
def test_quick_commands_load_nothing_heavy(words: tuple[str, ...]) -> None:
    """Version and help load neither network, terminal nor loop."""
    done = launch(sys.executable, "-X", "importtime", "-m", "surecall", *words)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "surecall.cli.main" in loaded
    assert loaded & HEAVY == set()


@pytest.mark.parametrize(
    "words", [("models",), ("docs", "explain", "AUTH"), ("docs", "explain", "--list")]
)
def test_json_needs_no_terminal_library(words: tuple[str, ...]) -> None:
    """With `--json` nothing is made for people."""
    done = launch(sys.executable, "-X", "importtime", "-m", "surecall", "--json", *words)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert done.returncode == 0
    assert "rich" not in loaded


def test_the_script_and_the_module_are_the_same() -> None:
    """`surecall` and `python -m surecall` say the same."""
    as_script = launch(SCRIPT, "--help")
    as_module = launch(sys.executable, "-m", "surecall", "--help")
    assert as_script.returncode == as_module.returncode == 0
    assert as_script.stdout == as_module.stdout
    assert as_script.stdout.startswith("Usage: surecall ")


def test_exit_codes_reach_the_shell() -> None:
    """A process ends with the code of its command."""
    assert launch(SCRIPT, "docs", "explain", "NOPE").returncode == 4
    assert launch(SCRIPT, "models", "nothing-like-this").returncode == 5


def test_a_reader_that_goes_away_is_no_error() -> None:
    """`surecall docs explain --list | head -1` ends quietly."""
    words = [str(SCRIPT), "docs", "explain", "--list"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(50) == 0


@pytest.mark.skipif(os.name != "posix", reason="closes streams as a shell does")
@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", ">&- 2>&- <&-"])
@pytest.mark.parametrize(
    "words", ["models", "config schema", "connect --json", "docs explain --list"]
)
def test_a_closed_stream_is_no_error(words: str, closed: str) -> None:
    """`surecall models >&-` writes nothing, and nothing is wrong with that."""
    done = launch("sh", "-c", f'exec "$0" -m surecall {words} {closed}', sys.executable)
    assert (done.returncode, done.stderr) == (0, "")
    assert bool(done.stdout) == (not closed.startswith(">"))


@pytest.mark.skipif(os.name != "posix", reason="closes a stream as a shell does")
def test_a_closed_input_has_nothing_to_read() -> None:
    """It is as good as an empty one."""
    done = launch("sh", "-c", 'exec "$0" -m surecall read - <&-', sys.executable)
    assert done.returncode == 4
    assert "Standard input is empty" in done.stderr


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no device that is full")
@pytest.mark.parametrize(
    "words",
    [("--json", "models"), ("models",), ("models", "--help"), ("--json", "models", "--absent")],
)
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_one_line(words: tuple[str, ...], unbuffered: str) -> None:
    """What cannot be written is said once, without a traceback."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "surecall", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
        )
    assert done.stderr == "standard output cannot be written: No space left on device\n"
    assert done.returncode == 4


def test_a_poor_encoding_is_no_error() -> None:
    """Where a character cannot be written, its number is."""
    code = "import sys; sys.stdout.reconfigure(encoding='ascii'); "
    code += "from surecall.cli import cli; cli(['demo'], prog_name='surecall')"
    done = launch(sys.executable, "-c", code)
    assert done.returncode == 0
    assert "\\u2713 ok" in done.stdout
