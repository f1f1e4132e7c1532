"""The configuration that workerd is started with, as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.capnp import Raw, capnp, make_folders, quoted, worker_config
from core.runtime.plan import Cluster, External, Module, Plan, Socket

MODULES = [Module("entry.mjs", "esModule", "modules/entry.mjs")]
SOCKETS = {"http": Socket("127.0.0.1:0"), "health": Socket("127.0.0.1:0", "Health")}


def config(plan: Plan, cluster: Cluster | None = None) -> str:
    return worker_config(plan, MODULES, storage="/state", sockets=SOCKETS, cluster=cluster)


def test_values_are_written_as_capn_proto_reads_them() -> None:
    assert capnp({"a": True, "b": [1, "x"], "c": Raw("void")}) == '( a = true, b = [ 1,\n    "x" ], c = void )'
    with pytest.raises(TypeError, match="has no form"):
        capnp(None)


@given(st.text())
def test_a_string_literal_ends_where_its_text_ends(text: str) -> None:
    literal = quoted(text)
    inside = literal[1:-1]
    assert literal[0] == literal[-1] == '"'
    assert "\n" not in inside
    assert not inside.replace("\\\\", "").replace('\\"', "").count('"')


def test_a_binding_of_every_kind_names_its_service() -> None:
    text = config(
        Plan(
            vars={"TEXT": "a", "TABLE": {"b": 1}},
            secrets=["TOKEN"],
            kv={"KV": "id"},
            d1={"DB": "id"},
            queues={"JOBS": "jobs"},
            consumers={"jobs": {"maxBatchSize": 5}},
            durable_objects={"COUNTER": "Counter", "SAME": "Counter"},
            crons=["* * * * *"],
            assets=("ASSETS", "/assets", {"html_handling": "none"}),
        )
    )
    assert '( name = "TEXT", text = "a" )' in text
    assert '( name = "TABLE", json = "{\\"b\\": 1}" )' in text
    assert '( name = "TOKEN", fromEnvironment = "TOKEN" )' in text
    assert 'kvNamespace = ( name = "core-kv", props = ( json = "{\\"namespace\\": \\"id\\"}" ) )' in text
    assert "cloudflare-internal:d1-api" in text
    assert 'queue = ( name = "core-queues"' in text
    assert text.count('className = "Counter"') == 1
    assert '\\"maxBatchSize\\": 5' in text
    assert '\\"worker\\": [\\"* * * * *\\"]' in text
    # Requests go to the files first, which hand on what they have not.
    assert 'service = ( name = "core-assets" )' in text


def test_what_is_not_asked_for_is_not_there(tmp_path: Path) -> None:
    text = config(Plan())
    assert "core-kv" not in text
    assert "durableObject" not in text
    make_folders(tmp_path, Plan())
    assert [*tmp_path.iterdir()] == []


def test_a_cluster_keeps_large_values_in_its_bucket(tmp_path: Path) -> None:
    plan = Plan(kv={"KV": "id"}, queues={"Q": "q"})
    cluster = Cluster(bucket="s3://b/p", key="k" * 32, address="10.0.0.1:7000", options=["aws_region=auto"])
    text = config(plan, cluster)
    assert 'bucket = ( path = "kv-blobs" )' in text
    assert text.count('name = "CLUSTERED"') == 2
    make_folders(tmp_path, plan, cluster)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kv", "kv-cache", "queues"]


def test_a_bucket_is_asked_for_with_its_token_and_is_absent_without_a_service() -> None:
    plan = Plan(r2={"FILES": "files"})
    buckets = {"files": External("127.0.0.1:1234", "secret")}
    text = worker_config(plan, MODULES, storage="/state", sockets=SOCKETS, buckets=buckets)
    assert 'name = "FILES", r2Bucket = "core-r2-FILES"' in text
    assert 'address = "127.0.0.1:1234"' in text
    assert 'injectRequestHeaders = [ ( name = "Authorization", value = "secret" ) ]' in text
    assert "r2Bucket" not in config(plan)
    assert "workerd, which has no buckets of its own" in config(plan)


def test_a_plan_without_state_may_run_side_by_side() -> None:
    assert not Plan(vars={"A": "b"}).keeps_state
    assert Plan(crons=["* * * * *"]).keeps_state
