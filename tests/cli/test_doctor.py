"""`surecall config doctor`: every value with its origin, every problem with its fix."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from support.upstream import CLOSE, HANG, FaultyUpstream, http_response, unused_port
from surecall.cli import ExitCode
from surecall.models.transport import Deadlines

from .harness import document, invoke


def checks_of(*words: str, **variables: str) -> dict[str, dict[str, Any]]:
    """Run it and return the checks by group and name."""
    found = document(invoke("config", "doctor", "--json", *words, **variables))
    return {f"{check['group']}/{check['name']}": check for check in found["checks"]}


def test_values_are_shown_with_their_origin(tmp_path: Path) -> None:
    """File, variable and flag are told apart, and a key is never shown."""
    (tmp_path / "surecall.toml").write_text("[options]\nmax_turns = 3\n[retry]\nmax_retries = 0\n")
    variables = {"SURECALL_MODEL": "m", "SURECALL_API_KEY": "sk-secretsecretsecret"}
    url = "http://127.0.0.1:9/v1"
    result = invoke("config", "doctor", "--offline", "--base-url", url, **variables)
    assert result.exit_code == 0
    assert "sk-secret" not in result.stdout
    found = checks_of("--offline", "--base-url", url, **variables)
    assert found["settings/model"]["origin"] == "SURECALL_MODEL"
    assert found["settings/base_url"]["origin"] == "flag"
    assert (found["settings/api_key"]["value"], found["settings/api_key"]["origin"]) == (
        "set",
        "SURECALL_API_KEY",
    )
    assert found["options/max_turns"]["value"] == "3"
    assert "surecall.toml" in found["options/max_turns"]["origin"]
    assert found["limits/max_turns"]["value"] == "3"
    assert "max_retries 0" in found["limits/retry"]["value"]


def test_nothing_set_is_fine_but_said() -> None:
    """Without settings there are warnings with a fix, no request, and exit code 0."""
    found = checks_of()
    assert [name for name, check in found.items() if check["status"] == "fail"] == []
    assert found["settings/model"]["status"] == "warn"
    assert "SURECALL_MODEL" in found["settings/model"]["fix"]
    assert not any(name.startswith("provider/") for name in found)


def test_every_problem_has_a_fix() -> None:
    """No line that is not ok leaves the reader alone."""
    url = f"http://127.0.0.1:{unused_port()}"
    found = checks_of("--base-url", url, SURECALL_OPTIONS__MAX_TURN="3")
    bad = [check for check in found.values() if check["status"] != "ok"]
    assert len(bad) >= 3
    assert [check for check in bad if not check["fix"]] == []


def test_an_unreachable_provider_is_exit_code_6() -> None:
    """The line has the code of the failure and what to look at."""
    url = f"http://127.0.0.1:{unused_port()}"
    result = invoke("config", "doctor", "--base-url", url)
    assert result.exit_code == ExitCode.PROVIDER
    assert "✗ fail" in result.stdout
    assert "CONNECTION_REFUSED" in result.stdout
    assert "Check that the server runs" in result.stdout


def test_unusable_settings_are_exit_code_4(tmp_path: Path) -> None:
    """A key that is not known is shown with what was meant; the rest is still checked."""
    (tmp_path / "surecall.toml").write_text('modle = "m"\n')
    result = invoke("config", "doctor", "--json")
    assert result.exit_code == ExitCode.USAGE
    checks = document(result)["checks"]
    assert checks[0]["code"] == "UNKNOWN_CONFIG_KEY"
    assert "'model'" in checks[0]["fix"]
    assert {"disk", "system"} <= {check["group"] for check in checks}


def test_an_unknown_option_is_exit_code_4() -> None:
    """Options are resolved as a run would resolve them."""
    result = invoke("config", "doctor", "--offline", SURECALL_OPTIONS__MAX_TURN="3")
    assert result.exit_code == ExitCode.USAGE
    assert "UNKNOWN_OPTION" in result.stdout
    assert "max_turns" in result.stdout


def test_a_folder_that_cannot_be_written_is_exit_code_4(tmp_path: Path) -> None:
    """The write test is made where runs would leave their files."""
    (tmp_path / "file").write_text("")
    result = invoke("config", "doctor", "--json", SURECALL_TRACE_DIR=str(tmp_path / "file"))
    assert result.exit_code == ExitCode.USAGE
    failed = [check for check in document(result)["checks"] if check["status"] == "fail"]
    assert [check["name"] for check in failed] == ["trace_dir"]
    assert not list(tmp_path.glob(".surecall-*"))


@pytest.mark.parametrize(
    ("status", "code", "exit_code"),
    [(401, "AUTH", 6), (403, "FORBIDDEN", 6), (503, "UPSTREAM_5XX", 6), (404, "", 0)],
)
async def test_the_answer_of_the_provider_is_judged(status: int, code: str, exit_code: int) -> None:
    """A refused key is a failure; a provider without a list of models is not."""
    async with FaultyUpstream([http_response(b"{}", status)]) as upstream:
        result = await asyncio.to_thread(
            invoke,
            "config",
            "doctor",
            "--json",
            "--base-url",
            upstream.url,
            SURECALL_API_KEY="k" * 12,
        )
        (request,) = upstream.requests
    assert result.exit_code == exit_code
    assert request.head.startswith("GET /v1/models ")
    assert request.headers["authorization"] == "Bearer " + "k" * 12
    provider = [check for check in document(result)["checks"] if check["group"] == "provider"]
    assert provider[0]["code"] == code


async def test_a_model_the_provider_does_not_list_is_said() -> None:
    """The closest name of its list is suggested."""
    listed = http_response(b'{"data": [{"id": "qwen3-8b"}, {"id": 7}, 3]}')
    async with FaultyUpstream([listed]) as upstream:
        words = ("--base-url", upstream.url, "--model", "qwen3-8")
        found = await asyncio.to_thread(checks_of, *words)
    assert found["provider/model"]["status"] == "warn"
    assert "'qwen3-8b'" in found["provider/model"]["fix"]


async def test_a_wrong_clock_is_noticed() -> None:
    """A provider whose clock is far from ours leads to a warning."""
    dated = http_response(b"{}", headers={"date": "Mon, 01 Jan 2024 00:00:00 GMT"})
    async with FaultyUpstream([dated]) as upstream:
        found = await asyncio.to_thread(checks_of, "--base-url", upstream.url)
    assert found["provider/clock"]["status"] == "warn"


@pytest.mark.parametrize(
    ("script", "code"), [(CLOSE, "CONNECTION_RESET"), (b"nonsense\r\n\r\n", "UPSTREAM_BAD_FRAMING")]
)
async def test_a_server_that_is_no_provider_is_told(script: Any, code: str) -> None:
    """A connection that is closed, or speaks no HTTP, has its code."""
    async with FaultyUpstream([script]) as upstream:
        result = await asyncio.to_thread(
            invoke, "config", "doctor", "--json", "--base-url", upstream.url
        )
    assert result.exit_code == ExitCode.PROVIDER
    provider = [check for check in document(result)["checks"] if check["group"] == "provider"]
    assert provider[0]["code"] == code


async def test_a_silent_provider_does_not_hold_it_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that never answers is given up after a short deadline."""
    monkeypatch.setattr("surecall.cli.reach._DEADLINES", Deadlines(first_byte_s=0.2))
    async with FaultyUpstream([HANG]) as upstream:
        found = await asyncio.to_thread(checks_of, "--base-url", upstream.url)
        assert found[f"provider/{upstream.url}"]["code"] == "FIRST_BYTE_TIMEOUT"


def test_a_folder_that_is_gone_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be looked at does not end the look at everything else."""
    folder = tmp_path / "gone"
    folder.mkdir()
    monkeypatch.chdir(folder)
    folder.rmdir()
    result = invoke("config", "doctor", "--offline", "--json")
    failed = {check["name"] for check in document(result)["checks"] if check["status"] == "fail"}
    assert (result.exit_code, failed) == (4, {"settings", "current folder"})
