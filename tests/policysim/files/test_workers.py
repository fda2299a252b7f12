"""Work on many files: in threads and on a cluster as here, although workers die, or the run is interrupted."""

import os
import re
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from parts_work import count_and_tell, die_at, log_rows, told_of, working, write_parts

from policysim.cli.main import main
from policysim.files import workers as work_on_files
from policysim.files.bad_rows import DataError
from policysim.files.workers import Workers, check_versions
from policysim.logs.counted_log import count_part
from policysim.logs.kinds import Counted, Kinds
from policysim.question.protocol import UsageError
from policysim.study.study_reader import load_study

N_PARTS = 7
SUPPORT = Path(__file__).parents[2] / "support"
# What distributed itself leaves to the garbage collector when a cluster on this machine ends.
CLUSTER = pytest.mark.filterwarnings(
    "ignore:unclosed:ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def told(tmp_path):
    folder = tmp_path / "told"
    folder.mkdir()
    return str(folder)


@pytest.fixture
def source(tmp_path):
    return load_study(write_parts(tmp_path, log_rows(500), N_PARTS)).log


@pytest.fixture
def counting(source):
    return replace(source, parts=())


def total(workers, work, source):
    """The kinds of patients of all parts and their counts, as bytes."""
    kinds = Kinds(["cured"])
    for found, (n_bad, _) in workers.map(work, source.parts):
        assert n_bad == 0
        kinds.add(found)
    return [array.tobytes() for array in kinds.arrays()]


@pytest.fixture
def here(source, counting):
    return total(Workers(), working(count_part, counting), source)


def test_threads_count_the_same_each_part_once(source, counting, here, told):
    assert total(Workers(3), working(count_and_tell, told, counting), source) == here
    assert told_of(told) == {f"{number:04}.csv": 1 for number in range(N_PARTS)}


def test_parts_come_back_in_their_order_whoever_is_faster_and_do_not_pile_up(source):
    under_way, is_done = set(), threading.Event()

    def second_before_first(part):
        under_way.add(part)
        if part == source.parts[0]:
            assert is_done.wait(timeout=60)
        if part == source.parts[1]:
            is_done.set()
        return part

    found = Workers(2).map(second_before_first, source.parts)
    assert next(found) == source.parts[0]
    assert len(under_way) <= 4
    assert list(found) == list(source.parts[1:])


def test_who_ends_early_ends_the_rest(source):
    begun = []

    def fails(part):
        begun.append(part)
        if part == source.parts[0]:
            raise DataError("cannot be read")
        return part

    with pytest.raises(DataError, match="cannot be read"):
        list(Workers(2).map(fails, source.parts))
    assert len(begun) <= 4
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("ThreadPoolExecutor")]


def test_bad_data_in_a_thread_is_told_as_here(source, counting):
    source.parts[4].unlink()
    with pytest.raises(DataError, match=r"0004\.csv: cannot be read: No such file or directory"):
        total(Workers(2), working(count_part, counting), source)


@pytest.fixture
def local_cluster():
    """Clusters whose status is at a port that is free: its own may be taken by another run of the tests."""
    distributed = pytest.importorskip("distributed")

    def start(**options):
        return distributed.LocalCluster(
            **{"n_workers": 2, "protocol": "tcp://"} | options,
            threads_per_worker=1,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        )

    return start


@CLUSTER
def test_a_cluster_counts_the_same(source, counting, here, told, local_cluster):
    with local_cluster(processes=False) as scheduler:
        workers = Workers(cluster=scheduler.scheduler_address)
        assert total(workers, working(count_and_tell, told, counting), source) == here
        source.parts[4].unlink()
        with pytest.raises(DataError, match=r"0004\.csv: cannot be read: No such file or directory"):
            total(workers, working(count_part, counting), source)
    assert told_of(told) == {f"{number:04}.csv": 1 for number in range(N_PARTS)}


@CLUSTER
def test_a_worker_of_a_cluster_that_is_killed_costs_a_retry(source, counting, here, told, local_cluster):
    with local_cluster(processes=True) as scheduler:
        workers = Workers(cluster=scheduler.scheduler_address)
        assert total(workers, working(die_at, "0003.csv", told, counting), source) == here
    assert sorted(told_of(told)) == [f"{number:04}.csv" for number in range(N_PARTS)]


@CLUSTER
def test_a_part_that_no_worker_of_a_cluster_survives_is_told(source, counting, told, local_cluster):
    config = pytest.importorskip("dask").config
    with config.set({"distributed.scheduler.allowed-failures": 0}), local_cluster(processes=True) as scheduler:
        workers = Workers(cluster=scheduler.scheduler_address)
        with pytest.raises(DataError, match=r"\.csv: the workers of the cluster that read it died: "):
            total(workers, working(die_at, "0000.csv", told, counting), source)


@pytest.fixture
def no_socket(monkeypatch):
    def refuse(*arguments, **_):
        raise AssertionError(f"opened: {arguments}")

    for name in ("socket", "create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


@pytest.mark.usefixtures("no_socket")
@pytest.mark.parametrize(
    "address",
    [
        *("nowhere", "gopher://127.0.0.1:8786", "127.0.0.1:port", "", "tls://", "tcp://127.0.0.1", "tls://a b:1"),
        *("ws://127.0.0.1:8786", "wss://127.0.0.1:8786", "ucx://127.0.0.1:8786", "inproc://127.0.0.1/1/1"),
        *("TCP://127.0.0.1:8786", "tls://host:8786\n", "tls://user@host:8786", "tls://host:8786/x"),
    ],
)
def test_an_address_that_is_none_is_refused_at_once(tmp_path, capsys, address):
    study = write_parts(tmp_path, log_rows(200), 2)
    assert main(["compare", str(study), f"--cluster={address}", "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert (
        said == f"policysim: --cluster must be tls://HOST:PORT, or tcp://HOST:PORT on this machine, got {address!r}\n"
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_socket")
@pytest.mark.parametrize("scheme", ["tcp://", ""])
@pytest.mark.parametrize(
    "host",
    [
        *("10.0.0.1", "203.0.113.1", "scheduler.example", "localhost.example", "127.0.0.1.example", "0.0.0.0", "127.1"),
        *("[fe80::1]", "[::]", "[::ffff:10.0.0.1]", "128.0.0.1", "126.255.255.255"),
    ],
)
def test_plain_tcp_to_another_machine_is_refused_at_once(tmp_path, capsys, scheme, host):
    study, address = write_parts(tmp_path, log_rows(200), 2), f"{scheme}{host}:8786"
    assert main(["compare", str(study), "--cluster", address, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"policysim: --cluster {address}: tcp:// only goes to this machine, ")
    assert said.endswith(f"could run code here; use tls://{host}:8786\n")
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("host", ["127.0.0.1", "127.255.255.254", "localhost", "[::1]"])
def test_plain_tcp_stays_on_this_machine_whatever_dask_takes_for_its_scheme(host):
    assert work_on_files.checked_address(f"tcp://{host}:8786") == f"tcp://{host}:8786"
    assert work_on_files.checked_address(f"{host}:8786") == f"tcp://{host}:8786"


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "scheduler.example", "[fe80::1]"])
def test_tls_goes_anywhere(host):
    assert work_on_files.checked_address(f"tls://{host}:8786") == f"tls://{host}:8786"


@pytest.mark.usefixtures("no_socket")
def test_tls_without_certificates_is_refused_before_a_connection():
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match=r"--cluster tls://host:1: Dask's configuration names no certificates: set "):
        next(work_on_files.on_cluster("tls://host:1", count_part, []))


@CLUSTER
def test_tls_takes_the_certificates_of_dasks_configuration(source, counting, here, local_cluster):
    distributed, config = pytest.importorskip("distributed"), pytest.importorskip("dask").config
    own, other = (str(SUPPORT / name) for name in ("cluster.pem", "another_authority.pem"))
    security = distributed.Security(
        require_encryption=True, tls_ca_file=own, tls_scheduler_cert=own, tls_worker_cert=own, tls_client_cert=own
    )

    def counted(address, authority):
        with config.set({"distributed.comm.tls.ca-file": authority, "distributed.comm.tls.client.cert": own}):
            return total(Workers(cluster=address), working(count_part, counting), source)

    with local_cluster(processes=False, protocol="tls://", security=security) as scheduler:
        address = scheduler.scheduler_address
        assert address.startswith("tls://")
        assert counted(address, own) == here
        with pytest.raises(UsageError, match=f"{address}: there is no Dask cluster: TLS certificate does not"):
            counted(address, other)
        with pytest.raises(UsageError, match=f"{address}: Dask's certificates cannot be used: .*No such file"):
            counted(address, "nowhere.pem")


def test_the_help_says_what_a_cluster_is_trusted_with(capsys):
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    help_text = " ".join(capsys.readouterr().out.split())
    assert "Its scheduler is trusted completely: whoever controls it runs code here" in help_text


@CLUSTER
def test_a_cluster_that_is_not_there_is_told(tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed")
    monkeypatch.setattr(work_on_files, "CONNECT_SECONDS", 0.5)
    with socket.socket() as taken:  # nobody listens at its port
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        study = write_parts(tmp_path, log_rows(200), 2)
        assert main(["compare", str(study), "--cluster", address, "--out", str(tmp_path / "out")]) == 2
    # Before it are warnings of libraries about each other, where these are shown.
    said = capsys.readouterr().err.splitlines(keepends=True)[-1]
    assert said.startswith(f"policysim: --cluster {address}: there is no Dask cluster: ")
    assert not (tmp_path / "out").exists()


@CLUSTER
def test_somebody_who_listens_and_is_no_cluster_is_told(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(work_on_files, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"{address}: there is no Dask cluster: who listens there does not answer"):
            next(work_on_files.on_cluster(address, count_part, [tmp_path]))


class FoundVersions:
    """A client whose workers answer this when they are asked for the version of the package."""

    def __init__(self, found):
        self._found = found

    def run(self, *_, **__):
        return self._found


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, "has no workers: start some with dask worker tcp://here:1"),
        ({"tcp://a": OSError("gone")}, "the worker tcp://a does not answer: gone"),
    ],
)
def test_a_cluster_without_workers_or_with_one_that_does_not_answer_is_told(found, said):
    with pytest.raises(UsageError, match=f"--cluster tcp://here:1: {said}"):
        check_versions(FoundVersions(found), "tcp://here:1")


@contextmanager
def worker_process(address, paths):
    """A worker of a cluster, whose modules and packages are those of these folders; it ends with the block."""
    command = [sys.executable, "-S", "-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard"]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, paths))}
    # Not in the folder of the package.
    with subprocess.Popen(
        [*command, "--host", "127.0.0.1"], cwd=paths[0], env=environment, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield
        finally:
            process.kill()


@CLUSTER
@pytest.mark.parametrize("theirs", ["", "0.0.1"])
def test_a_real_worker_without_the_package_or_with_another_version_is_told(tmp_path, capsys, local_cluster, theirs):
    others = tmp_path / "others"
    others.mkdir()
    # All that is installed where dask is, but this package.
    for path in Path(pytest.importorskip("distributed").__file__).parents[1].iterdir():
        if not path.name.lower().startswith(("policysim", "__editable__")):
            (others / path.name).symlink_to(path)
    if theirs:
        about = others / f"policysim-{theirs}.dist-info"
        about.mkdir()
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: policysim\nVersion: {theirs}\n")
    study = write_parts(tmp_path, log_rows(200), 2)
    with (
        local_cluster(processes=False, n_workers=0) as scheduler,
        worker_process(scheduler.scheduler_address, [others]),
    ):
        scheduler.wait_for_workers(1, timeout=60)
        asked = ["compare", str(study), "--cluster", scheduler.scheduler_address, "--out", str(tmp_path / "out")]
        assert main(asked) == 2
    # Before it are warnings of libraries about each other, where these are shown.
    said = capsys.readouterr().err.splitlines(keepends=True)[-1]
    address = re.escape(scheduler.scheduler_address)
    wrong = "has policysim 0.0.1, this is" if theirs else "has no package policysim: install"
    assert re.fullmatch(
        rf"policysim: --cluster {address}: the worker tcp://127\.0\.0\.1:\d+ {wrong} \S+( there)?\n", said
    )
    assert not (tmp_path / "out").exists()


@CLUSTER
def test_bad_rows_that_a_cluster_finds_are_told_with_their_whole_path(tmp_path, monkeypatch, capsys, local_cluster):
    monkeypatch.chdir(tmp_path)
    write_parts(tmp_path, log_rows(300).assign(chance=1.5), 3)
    with local_cluster(processes=False) as scheduler:
        assert main(["compare", "study.toml", "--cluster", scheduler.scheduler_address]) == 3
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"policysim: {tmp_path.as_posix()}/parts/0000.csv:2: row 1: chance: must be ")
    assert said[-1] == "policysim: ... and 280 more"


@pytest.mark.parametrize("n_workers", ["1", "2"])
@pytest.mark.usefixtures("source")
def test_an_interrupted_count_leaves_nothing(tmp_path, monkeypatch, capsys, n_workers):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))

    def stop(counting, part):
        if part.name == "0003.csv":
            raise KeyboardInterrupt
        return count_part(counting, part)

    monkeypatch.setattr("policysim.logs.counted_log.count_part", stop)
    assert main(["compare", "study.toml", "--out", "out", "--workers", n_workers]) == 130
    assert capsys.readouterr().err == "policysim: interrupted; nothing was written\n"
    assert sorted(tmp_path.rglob("*")) == before


def test_options_that_cannot_be(tmp_path, capsys):
    study = str(write_parts(tmp_path, log_rows(200), 2))
    for options, said in (
        (["--workers", "0"], "--workers must be a whole number >= 1, got '0'"),
        (["--workers", "2", "--cluster", "a:1"], "--workers does not go with --cluster, which has workers of its own"),
    ):
        assert main(["compare", study, *options]) == 2
        assert capsys.readouterr().err == f"policysim: {said}\n"
    for study, options in (("covid", []), ("covid", ["--horizon", "3"])):
        assert main(["compare", study, "--workers", "2", *options]) == 2
        assert "--workers " in capsys.readouterr().err


def test_sums_of_counts_do_not_overflow():
    kinds = Kinds([])
    row = np.zeros((1, 5), dtype=np.int64)
    for _ in range(3):
        kinds.add(Counted.of(row, np.array([2**61])))
    assert kinds.arrays()[1].tolist() == [3 * 2**61]
