"""The files of deploy/: what each names is there, and the settings in it can be used."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from surecall.gateway.settings.load import load_settings

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
VARIABLES = {
    "OPENAI_API_KEY": "sk-test-1234567890abcdef",
    "SURECALL_TEAM_KEY": "team-key-1234567890",
    "DATABASE_URL": "postgresql://surecall:p@database/surecall",
}


def test_the_settings_are_right() -> None:
    """With the variables that the compose file sets, and not without them."""
    settings = load_settings(DEPLOY / "gateway.toml", environ=VARIABLES)
    assert [key.settings.id for key in settings.keys] == ["team"]
    assert settings.upstreams["main"].key is not None
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    gateway = compose["services"]["gateway"]
    assert set(gateway["environment"]) == set(VARIABLES)
    assert gateway["volumes"][0].split(":")[1] in (DEPLOY / "Dockerfile").read_text()
    assert set(compose["volumes"]) == {"spool", "database"}
    port = settings.server.port
    assert gateway["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert float(gateway["stop_grace_period"].rstrip("s")) > settings.server.drain_s


def test_the_image_runs_as_nobody_special() -> None:
    """Pinned, without a cache, with a user of its own, a health check and a signal to end."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    words = dict(re.findall(r"^([A-Z]+) (.*)$", text, re.MULTILINE))
    version = (ROOT / "src/surecall/base/version.py").read_text()
    assert re.fullmatch(r"python:3\.1[123]-slim", words["FROM"])
    assert words["ARG"].partition("=")[2] in version
    assert "--no-cache-dir" in words["RUN"]
    assert "==${SURECALL_VERSION}" in words["RUN"]
    assert words["USER"].isdigit()
    assert int(words["USER"]) > 0
    assert words["STOPSIGNAL"] == "SIGTERM"
    assert "/healthz" in words["HEALTHCHECK"]
    assert words["ENTRYPOINT"] == '["surecall", "serve"]'


def test_the_page_shows_the_unit_that_is_there() -> None:
    """Whoever copies from the page has the same file."""
    page = (ROOT / "docs/how-to/deploy-the-gateway.md").read_text("utf-8")
    assert (DEPLOY / "surecall.service").read_text() in page


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
def test_the_unit_is_valid(tmp_path: Path) -> None:
    """Systemd finds nothing wrong with it, given a program that is there."""
    unit = tmp_path / "surecall.service"
    text = (DEPLOY / "surecall.service").read_text()
    unit.write_text(text.replace("/opt/surecall/bin/surecall", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "surecall" in line]
    assert said == []
