"""Windows are as the lane's estimator has them (tests/core/window_test.cc)."""
from __future__ import annotations

import pytest
from kvstore_ext.predict.cluster import Cluster
from kvstore_ext.predict.windows import settled


@pytest.mark.parametrize(("hosts", "parts"), [(2, 4), (7, 4), (8, 3), (11, 3), (12, 2), (16, 2)])
def test_many_hosts_have_less_under_way_on_each_link(hosts, parts):
    window = settled(Cluster.of(hosts, 1.0), 1e-4, 200_000)
    assert (window.part, window.bytes) == (200_000, parts * 200_000)


def test_workers_of_one_host_share_its_wire():
    cluster = Cluster.of(4, 1.0, workers_per_host=4)
    assert settled(cluster, 1e-4, 200_000).bytes == 400_000


@pytest.mark.parametrize("hosts", [4, 16])
def test_long_links_hold_more(hosts):
    assert settled(Cluster.of(hosts, 10.0), 0.1, 200_000).bytes > 800_000
