"""A log is counted by threads and by a cluster as by this thread, although workers die, or the run is interrupted."""

import functools
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from parts_work import bits, die_once, log_rows, write_parts

from policysim.cli.main import main
from policysim.errors import UsageError
from policysim.files.bad_rows import DataError
from policysim.logs import counted_log
from policysim.logs.counted_log import cluster_executor, count_log, count_part
from policysim.study.study_reader import load_study

# What distributed itself leaves to the garbage collector when a cluster on this machine ends.
CLUSTER = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def patient(monkeypatch):
    """A machine that is busy may need long to answer itself."""
    monkeypatch.setattr(counted_log, "CONNECT_SECONDS", 60)


@pytest.fixture
def source(tmp_path):
    return load_study(write_parts(tmp_path, log_rows(500), 7)).log


def test_threads_count_the_same_and_name_the_file_of_an_error(source, monkeypatch):
    alone = bits(count_log(source))
    monkeypatch.setattr(counted_log, "MOST_WAITING", 5)
    with ThreadPoolExecutor(3) as threads:
        assert bits(count_log(source, threads)) == alone
        source.parts[4].unlink()
        with pytest.raises(DataError, match=r"0004\.csv: cannot be read: No such file or directory"):
            count_log(source, threads)


@CLUSTER
@pytest.mark.usefixtures("patient")
def test_a_cluster_counts_the_same_although_a_worker_is_killed(source, tmp_path, monkeypatch):
    distributed, alone = pytest.importorskip("distributed"), bits(count_log(source))
    monkeypatch.setattr(counted_log, "count_part", functools.partial(die_once, str(tmp_path)))
    with (
        pytest.importorskip("dask").config.set({"distributed.worker.multiprocessing-method": "forkserver"}),
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as cluster,
        cluster_executor(cluster.scheduler_address) as executor,
    ):
        assert bits(count_log(source, executor)) == alone
    assert (tmp_path / "killed").exists()


@CLUSTER
@pytest.mark.usefixtures("patient")
def test_a_file_that_no_worker_survives_is_named_and_a_cluster_without_workers_is_refused(source, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def killed(*_):
        raise distributed.KilledWorker("count_part", SimpleNamespace(address="tcp://here"), 3)

    monkeypatch.setattr(counted_log, "count_part", killed)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster:
        with (
            pytest.raises(DataError, match=r"parts/0000\.csv: the workers that counted it died: Attempted to run task"),
            cluster_executor(cluster.scheduler_address) as executor,
        ):
            count_log(source, executor)
        cluster.scale(0)
        with (
            pytest.raises(UsageError, match=r"each worker must have policysim \S+, its workers have none"),
            cluster_executor(cluster.scheduler_address),
        ):
            pytest.fail("counted")


@CLUSTER
@pytest.mark.parametrize("address", ["nowhere", "tcp://{free}", "tls://{silent}"])
def test_an_address_that_does_not_answer_is_one_line(tmp_path, monkeypatch, capsys, address):
    pytest.importorskip("distributed")
    monkeypatch.setattr(counted_log, "CONNECT_SECONDS", 0.5)
    study = write_parts(tmp_path, log_rows(200), 2)
    with socket.socket() as free, socket.create_server(("127.0.0.1", 0)) as silent:
        free.bind(("127.0.0.1", 0))
        ports = {"free": free.getsockname()[1], "silent": silent.getsockname()[1]}
        address = address.format(**{name: f"127.0.0.1:{port}" for name, port in ports.items()})
        assert main(["compare", str(study), f"--cluster={address}", "--out", str(tmp_path / "out")]) == 2
    # Before it are warnings of libraries about each other, where these are shown.
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"policysim: --cluster {address}: no Dask scheduler answers there: ")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("n_workers", ["1", "2"])
@pytest.mark.usefixtures("source")
def test_an_interrupted_count_leaves_nothing(tmp_path, monkeypatch, capsys, n_workers):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    def stop(columns, part):
        if part.name == "0003.csv":
            raise KeyboardInterrupt
        return count_part(columns, part)

    monkeypatch.setattr(counted_log, "count_part", stop)
    assert main(["compare", "study.toml", "--out", "out", "--workers", n_workers]) == 130
    assert capsys.readouterr().err == "policysim: interrupted; nothing was written\n"
    assert sorted(tmp_path.rglob("*")) == before
