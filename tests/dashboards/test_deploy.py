"""What deploy/ says of the commands and of this repository is so: flags exist, mounts exist, rights are few."""

import json
import re
import urllib.error
import urllib.request
from pathlib import Path

import jsonschema
import pytest
import yaml
from click.testing import CliRunner

from wirecheck import cli
from wirecheck.http_server import serving
from wirecheck.streaming.run.metrics_page import Page
from wirecheck.streaming.run.web_server import routes
from wirecheck.streaming.spark import tuning

ROOT = Path(__file__).resolve().parents[2]
COMPOSE = yaml.safe_load((ROOT / "deploy/compose.yml").read_text())
KUBERNETES = [
    document
    for path in sorted((ROOT / "deploy/kubernetes").glob("*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
SERVICES = COMPOSE["services"]
PODS = {
    d["metadata"]["name"]: d["spec"]["template"]["spec"] for d in KUBERNETES if d["kind"] in {"DaemonSet", "Deployment"}
}
CONTAINERS = {name: pod["containers"][0] for name, pod in PODS.items()}
COMMANDS = [SERVICES["agent"]["command"], SERVICES["monitor"]["command"], *(c["args"] for c in CONTAINERS.values())]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_every_flag_is_one_of_the_command(words):
    text = CliRunner().invoke(cli.main, [words[0], "--help"]).output
    known = set(re.findall(r"(?<![\w-])(--?[a-z][a-z-]*)", text))
    assert {word.partition("=")[0] for word in words[1:] if word.startswith("-")} <= known


def test_the_monitors_settings_are_settings(tmp_path):
    (config,) = [d["data"]["monitor.toml"] for d in KUBERNETES if "monitor.toml" in d.get("data", {})]
    (tmp_path / "monitor.toml").write_text(config)
    result = CliRunner().invoke(cli.main, ["monitor", "--config", str(tmp_path / "monitor.toml"), "--help"])
    assert (result.exit_code, "no setting" in result.output) == (0, False)


def test_what_compose_mounts_from_here_is_here():
    mounts = [volume for service in SERVICES.values() for volume in service.get("volumes", ())]
    ours = [mount.split(":")[0] for mount in mounts if mount.startswith(".")]
    assert len(ours) == 4
    assert [path for path in ours if not (ROOT / "deploy" / path).exists()] == []
    named = {mount.split(":")[0] for mount in mounts} - set(ours)
    assert named == set(COMPOSE["volumes"])


def test_the_boards_and_rules_stand_where_grafana_and_prometheus_look():
    provider = yaml.safe_load((ROOT / "dashboards/grafana/provisioning/dashboards/wirecheck.yml").read_text())
    folder = provider["providers"][0]["options"]["path"]
    assert f"../dashboards/grafana/wirecheck:{folder}:ro" in SERVICES["grafana"]["volumes"]
    asked = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())
    assert all((ROOT / "dashboards/prometheus" / Path(path).name).exists() for path in asked["rule_files"])
    assert all(job["job_name"].startswith("wirecheck") for job in asked["scrape_configs"])


def test_the_agent_has_one_right_and_the_monitor_none():
    assert (SERVICES["agent"]["cap_drop"], SERVICES["agent"]["cap_add"]) == (["ALL"], ["NET_RAW"])
    assert (SERVICES["monitor"]["cap_drop"], SERVICES["monitor"].get("cap_add")) == (["ALL"], None)
    rights = {name: container["securityContext"]["capabilities"] for name, container in CONTAINERS.items()}
    assert rights == {"wirecheck-agent": {"drop": ["ALL"], "add": ["NET_RAW"]}, "wirecheck-monitor": {"drop": ["ALL"]}}
    assert all(pod["securityContext"]["runAsNonRoot"] for pod in PODS.values())
    assert all(pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"} for pod in PODS.values())
    assert "privileged: true" not in (ROOT / "deploy/compose.yml").read_text()


SPARK = [
    document
    for path in sorted((ROOT / "deploy/kubernetes-spark").glob("[!k]*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
]
DATA = next(d["data"] for d in SPARK if d["kind"] == "ConfigMap")
DRIVER = next(d for d in SPARK if d["kind"] == "Deployment")["spec"]["template"]["spec"]
EXECUTOR = yaml.safe_load(DATA["executor.yaml"])["spec"]
CONF = dict(line.split() for line in DATA["spark-defaults.conf"].splitlines())
TEMPLATE = "spark.kubernetes.executor.podTemplateFile"


def test_what_spark_submit_is_given_is_there(tmp_path):
    _, properties, script, command, config = DRIVER["containers"][0]["args"]
    assert (Path(properties).name, Path(config.partition("=")[2]).name) == ("spark-defaults.conf", "monitor.toml")
    assert set(DATA) == {"spark-defaults.conf", "monitor.toml", Path(CONF[TEMPLATE]).name}
    assert script.endswith("/wirecheck/__main__.py")
    assert (ROOT / "wirecheck/__main__.py").exists()
    (tmp_path / "monitor.toml").write_text(DATA["monitor.toml"])
    result = CliRunner().invoke(cli.main, [command, "--config", str(tmp_path / "monitor.toml"), "--help"])
    assert (result.exit_code, "no setting" in result.output) == (0, False)


def test_executors_find_the_driver_and_see_what_it_sees():
    service = next(d for d in SPARK if d["kind"] == "Service")
    assert CONF["spark.driver.host"] == f"{service['metadata']['name']}.wirecheck.svc"
    ports = {port["port"] for port in service["spec"]["ports"]}
    assert {int(CONF["spark.driver.port"]), int(CONF["spark.driver.blockManager.port"])} <= ports
    seen = {mount["name"]: mount["mountPath"] for mount in EXECUTOR["containers"][0]["volumeMounts"]}
    drivers = {mount["name"]: mount["mountPath"] for mount in DRIVER["containers"][0]["volumeMounts"]}
    assert all(seen[name] == drivers[name] for name in seen.keys() & drivers.keys())
    assert {"frames", "state"} <= seen.keys() & drivers.keys()
    tasks = int(CONF["spark.executor.instances"]) * int(CONF["spark.executor.cores"])
    assert int(CONF["spark.sql.shuffle.partitions"]) == tasks


@pytest.mark.parametrize("pod", [DRIVER, EXECUTOR], ids=["driver", "executor"])
def test_driver_and_executors_mount_what_they_have_and_have_no_rights(pod):
    assert {mount["name"] for mount in pod["containers"][0]["volumeMounts"]} == {v["name"] for v in pod["volumes"]}
    assert pod["containers"][0]["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    assert pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"]
    assert pod["securityContext"]["runAsNonRoot"]


def test_no_setting_of_the_cluster_speaks_against_one_of_the_jobs():
    assert CONF.keys() & tuning.QUERY.keys() == set()
    assert (CONF["spark.speculation"], CONF["spark.dynamicAllocation.enabled"]) == ("false", "false")


@pytest.mark.parametrize("name", PODS)
def test_what_a_pod_mounts_it_has(name):
    volumes = {volume["name"]: volume for volume in PODS[name]["volumes"]}
    assert {mount["name"] for mount in CONTAINERS[name]["volumeMounts"]} == set(volumes)
    (namespace,) = [
        d["metadata"]["namespace"]
        for d in KUBERNETES
        if d["kind"] in {"DaemonSet", "Deployment"} and d["metadata"]["name"] == name
    ]
    claims = {
        d["metadata"]["name"]
        for d in KUBERNETES
        if d["kind"] == "PersistentVolumeClaim" and d["metadata"]["namespace"] == namespace
    }
    asked = {v["persistentVolumeClaim"]["claimName"] for v in volumes.values() if "persistentVolumeClaim" in v}
    assert asked <= claims


def test_agents_and_monitor_have_namespaces_of_their_own_and_one_folder():
    levels = {
        d["metadata"]["name"]: d["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
        for d in KUBERNETES
        if d["kind"] == "Namespace"
    }
    assert levels == {"wirecheck": "restricted", "wirecheck-agents": "privileged"}
    assert {d["metadata"]["namespace"] for d in KUBERNETES if d["kind"] == "Deployment"} == {"wirecheck"}
    assert {d["metadata"]["namespace"] for d in KUBERNETES if d["kind"] == "DaemonSet"} == {"wirecheck-agents"}
    volumes = {d["metadata"]["name"]: d["spec"] for d in KUBERNETES if d["kind"] == "PersistentVolume"}
    claimed = {
        (d["metadata"]["namespace"], d["metadata"]["name"]): d["spec"]["volumeName"]
        for d in KUBERNETES
        if d["kind"] == "PersistentVolumeClaim" and "volumeName" in d["spec"]
    }
    assert claimed == {(v["claimRef"]["namespace"], v["claimRef"]["name"]): name for name, v in volumes.items()}
    assert len({(v["nfs"]["server"], v["nfs"]["path"]) for v in volumes.values()}) == 1


def test_each_pod_is_reached_only_on_its_ports_and_only_by_its_peers():
    monitoring = {"kubernetes.io/metadata.name": "monitoring"}
    policies = {d["metadata"]["name"]: d for d in (*KUBERNETES, *SPARK) if d["kind"] == "NetworkPolicy"}
    allowed = {
        name: [
            (
                [next(iter(peer.values()))["matchLabels"] for peer in rule["from"]],
                [port["port"] for port in rule.get("ports", ())],
            )
            for rule in d["spec"]["ingress"]
        ]
        for name, d in policies.items()
    }
    driver, executor = ({"app.kubernetes.io/name": f"wirecheck-{name}"} for name in ("driver", "executor"))
    assert allowed == {
        "wirecheck-monitor": [([monitoring], [9108])],
        "wirecheck-agent": [([monitoring], [9788])],
        "wirecheck-driver": [([monitoring], [9108]), ([executor], [7078, 7079])],
        "wirecheck-executor": [([driver, executor], [])],
    }
    assert all(d["spec"]["policyTypes"] == ["Ingress"] for d in policies.values())
    assert {d["spec"]["podSelector"]["matchLabels"]["app.kubernetes.io/name"] for d in policies.values()} == set(
        allowed
    )


OPERATOR = {
    (document["kind"], document["metadata"]["name"]): document
    for path in sorted((ROOT / "deploy/kubernetes-prometheus-operator").glob("[!k]*.yaml"))
    for document in yaml.safe_load_all(path.read_text())
}
SCHEMA = json.loads((ROOT / "tests/dashboards/prometheus_operator_schema.json").read_text())


def wrong(kind, spec):
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA[kind]).iter_errors(spec)]


@pytest.mark.parametrize(("kind", "name"), OPERATOR)
def test_what_the_prometheus_operator_gets_is_what_its_definitions_allow(kind, name):
    document = OPERATOR[kind, name]
    assert document["apiVersion"] == "monitoring.coreos.com/v1"
    assert wrong(kind, document["spec"]) == []


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("PodMonitor", {"podMetricsEndpoints": [{"port": "metrics"}]}),
        ("PodMonitor", {"selector": {}, "podMetricsEndpoints": [{"port": "metrics", "intervall": "15s"}]}),
        ("PodMonitor", {"selector": {}, "podMetricsEndpoints": [{"port": "metrics", "interval": "15 s"}]}),
        ("PrometheusRule", {"groups": [{"name": "", "rules": []}]}),
        ("PrometheusRule", {"groups": [{"name": "a", "rules": [{"alert": "A", "expr": "1", "for": "2 minutes"}]}]}),
        ("PrometheusRule", {"groups": [{"name": "a", "rules": [{"alert": "A", "expr": "1", "labels": {"n": 1}}]}]}),
    ],
)
def test_what_the_definitions_do_not_allow_is_seen(kind, spec):
    assert wrong(kind, spec)


def test_pod_monitors_name_the_pods_their_ports_and_the_jobs_of_the_alerts():
    for name, container in CONTAINERS.items():
        (spec,) = [d["spec"] for (kind, of), d in OPERATOR.items() if (kind, of) == ("PodMonitor", name)]
        (deployed,) = [
            d for d in KUBERNETES if d["kind"] in {"DaemonSet", "Deployment"} and d["metadata"]["name"] == name
        ]
        labels = deployed["spec"]["template"]["metadata"]["labels"]
        assert spec["selector"]["matchLabels"].items() <= labels.items()
        assert {one["port"] for one in spec["podMetricsEndpoints"]} <= {port["name"] for port in container["ports"]}
        assert labels[spec["jobLabel"]].startswith("wirecheck")  # as the alerts look for
        assert OPERATOR["PodMonitor", name]["metadata"]["namespace"] == deployed["metadata"]["namespace"]


def test_the_rules_of_the_operator_are_those_of_the_files():
    files = [yaml.safe_load((ROOT / f"dashboards/prometheus/{name}.yml").read_text()) for name in ("rules", "alerts")]
    assert OPERATOR["PrometheusRule", "wirecheck"]["spec"]["groups"] == [g for file in files for g in file["groups"]]


@pytest.mark.parametrize("folder", ["kubernetes", "kubernetes-prometheus-operator", "kubernetes-spark"])
def test_every_document_is_in_its_kustomization(folder):
    listed = yaml.safe_load((ROOT / "deploy" / folder / "kustomization.yaml").read_text())["resources"]
    there = {path.name for path in (ROOT / "deploy" / folder).glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed) == there


def test_images_install_what_is_pinned_and_are_built_on_what_is_pinned():
    dockerfile = (ROOT / "deploy/Dockerfile").read_text()
    steps = re.findall(
        r"^(?:RUN|[ ]+(?:&& )?)(.*\b(?:pip|lock\.py \S+) (?:install|wheel)\b.*)$", dockerfile, re.MULTILINE
    )
    assert len(steps) == 8
    assert [step for step in steps if "python tools/lock.py " not in step and "--no-index" not in step] == []
    assert [step for step in steps if " wheel " in step and "--no-build-isolation" not in step] == []
    based = re.findall(r"^FROM (\S+:\S+)", dockerfile, re.MULTILINE)
    used = [service["image"] for service in SERVICES.values() if "build" not in service and "@" in service["image"]]
    unpinned = [image for image in based if not re.search(r"@sha256:[0-9a-f]{64}$", image)]
    assert unpinned == ["apache/spark:4.3.0"]  # its digest is not known
    assert len(used) == 4
    assert all(re.search(r":\S+@sha256:[0-9a-f]{64}$", image) for image in used)


def test_actions_are_pinned_by_commit():
    used = re.findall(r"uses: (\S+)(.*)", (ROOT / ".github/workflows/ci.yml").read_text())
    assert len(used) == 2
    assert all(re.search(r"@[0-9a-f]{40}$", action) and re.search(r"# v\d", tag) for action, tag in used)


def test_prometheus_scrapes_under_the_names_of_the_compose_file():
    asked = yaml.safe_load((ROOT / "deploy/prometheus.yml").read_text())["scrape_configs"]
    (target,) = [
        t for job in asked if "monitor" in job["job_name"] for c in job["static_configs"] for t in c["targets"]
    ]
    with serving(routes(Page(), lambda _: "findings"), "127.0.0.1", 0) as port:
        base = f"http://127.0.0.1:{port}"
        scraped = urllib.request.Request(f"{base}/metrics", headers={"Host": target})
        with urllib.request.urlopen(scraped, timeout=20) as answer:
            assert b"wirecheck_build_info" in answer.read()
        shown = urllib.request.Request(base, headers={"Host": target})
        with pytest.raises(urllib.error.HTTPError, match="421") as refused:
            urllib.request.urlopen(shown, timeout=20)
        refused.value.close()


def test_only_who_needs_the_file_capability_may_gain_a_right_and_roots_are_read_only():
    gains = {name: container["securityContext"]["allowPrivilegeEscalation"] for name, container in CONTAINERS.items()}
    assert gains == {"wirecheck-agent": True, "wirecheck-monitor": False}
    assert all(container["securityContext"]["readOnlyRootFilesystem"] for container in CONTAINERS.values())
    assert all(SERVICES[name]["read_only"] for name in ("agent", "monitor", "prometheus", "grafana"))
    held = {name for name, service in SERVICES.items() if service.get("security_opt") == ["no-new-privileges:true"]}
    assert held == {"monitor", "prometheus", "grafana"}
    assert all(SERVICES[name]["cap_drop"] == ["ALL"] for name in (*held, "agent"))
