"""Work on many files: in processes and on a cluster as here, although workers die, or the run is interrupted."""

import concurrent.futures
import os
import re
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import parts_work
import pytest
from parts_work import always_die, count_and_tell, die_at, is_alive, log_rows, stop_at, told_of, working, write_parts

from policysim.cli.main import main
from policysim.files import cluster, workers
from policysim.files.bad_rows import DataError
from policysim.files.cluster import check_versions
from policysim.files.workers import Workers
from policysim.logs.counted_log import Counting, columns_of, count_part
from policysim.logs.kinds import Kinds
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
    return Counting(source.features, columns_of(source), source.joined, source.header)


def total(workers, work, source, key="key"):
    """The kinds of patients of all parts and their counts, as bytes."""
    kinds = Kinds(["cured"])
    for found in workers.map(work, source.parts, key):
        kinds.add(found["kinds"], found["counts"])
    return [part.tobytes() for part in kinds.sorted()]


@pytest.fixture
def here(source, counting):
    return total(Workers(), working(count_part, counting), source)


def test_a_killed_process_costs_only_what_was_under_way(source, counting, here, told):
    found = total(Workers(2), working(die_at, "0003.csv", told, counting), source)
    assert found == here
    times = told_of(told)
    assert sorted(times) == [f"{number:04}.csv" for number in range(N_PARTS)]
    # At most four are under way with two processes.
    assert sum(times.values()) <= N_PARTS + 4


def test_processes_are_started_once(source, counting, here, monkeypatch):
    started = []

    def pool(n_processes):
        started.append(n_processes)
        return one_pool(n_processes)

    one_pool = workers._pool
    monkeypatch.setattr(workers, "_pool", pool)
    assert total(Workers(2), working(count_part, counting), source) == here
    assert started == [2]


def test_processes_end_with_the_run_that_was_killed(tmp_path, told):
    run = (
        "import functools; from pathlib import Path; from parts_work import wait_for_ever; "
        "from policysim.files.workers import Workers\n"
        f"parts = [Path({str(tmp_path)!r}), Path({told!r})]\n"
        f"list(Workers(2).map(functools.partial(wait_for_ever, {told!r}), parts, ''))"
    )
    paths = os.pathsep.join([str(Path(parts_work.__file__).parent), *sys.path])
    with subprocess.Popen([sys.executable, "-c", run], env=os.environ | {"PYTHONPATH": paths}) as killed:
        while len(list(Path(told).iterdir())) < 2:
            assert killed.poll() is None
            time.sleep(0.02)
        killed.kill()
    processes = [int(path.name) for path in Path(told).iterdir()]
    deadline = time.monotonic() + 60
    while any(map(is_alive, processes)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_alive, processes))


def test_processes_take_no_modules_of_the_current_folder(tmp_path, told):
    (tmp_path / "pandas.py").write_text("raise ValueError('not the one that is meant')")
    # A script elsewhere, as the command is: this process itself does not look into the current folder.
    script = Path(told) / "run.py"
    script.write_text(
        "from pathlib import Path; from policysim.files.workers import Workers, stamp\n"
        "if __name__ == '__main__':\n"
        "    print(len(list(Workers(2).map(stamp, [Path('pandas.py'), Path('.')], ''))))\n"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, str(script)], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("2\n", "")


def test_a_part_that_no_process_survives_is_told(source, counting):
    with pytest.raises(DataError, match=r"died 3 times: is there memory enough for so many workers\?"):
        total(Workers(2), working(always_die, counting), source)


@pytest.mark.parametrize("error", [EOFError("unexpected EOF"), ConnectionResetError()])
def test_the_death_of_the_process_that_starts_the_others_costs_another_start(
    source, counting, here, monkeypatch, error
):
    executor, submitted = concurrent.futures.ProcessPoolExecutor, []
    submit = executor.submit

    def dies_once(self, *given):
        submitted.append(given)
        if len(submitted) == 2:
            raise error
        return submit(self, *given)

    monkeypatch.setattr(executor, "submit", dies_once)
    assert total(Workers(2), working(count_part, counting), source) == here


def test_bad_data_in_a_process_is_told_as_here(source, counting):
    source.parts[4].unlink()
    with pytest.raises(DataError, match=r"0004\.csv: cannot be read: No such file or directory"):
        total(Workers(2), working(count_part, counting), source)


@pytest.mark.parametrize("n_processes", [1, 2])
def test_an_interrupted_run_is_taken_up_and_ends_with_the_same_bytes(source, counting, here, told, n_processes):
    kept = Path(told).with_name("out.counts")
    with pytest.raises(KeyboardInterrupt):
        total(Workers(kept=kept), working(stop_at, "0004.csv", told, counting), source)
    assert len(list(kept.iterdir())) == 4
    assert sum(told_of(told).values()) == 4
    resumed = Workers(n_processes, kept=kept, resume=True)
    assert total(resumed, working(count_and_tell, told, counting), source) == here
    assert told_of(told) == {f"{number:04}.csv": 1 for number in range(N_PARTS)}
    assert not kept.exists()


def test_what_was_kept_of_a_changed_part_or_another_question_is_not_taken(tmp_path, source, counting, told):
    kept = tmp_path / "out.counts"
    for key, changed, again in (("key", False, 0), ("key", True, 1), ("another key", False, 4)):
        with pytest.raises(KeyboardInterrupt):
            total(Workers(kept=kept), working(stop_at, "0004.csv", told, counting), source)
        if changed:
            source.parts[1].write_text(source.parts[1].read_text().replace("pill", "drip"))
        for path in (tmp_path / "told").iterdir():
            path.unlink()
        expected = total(Workers(), working(count_part, counting), source)
        resumed = Workers(kept=kept, resume=True)
        assert total(resumed, working(count_and_tell, told, counting), source, key) == expected
        assert sum(told_of(told).values()) == N_PARTS - 4 + again
        for path in (tmp_path / "told").iterdir():
            path.unlink()


def test_without_resume_nothing_is_taken_and_a_broken_file_never_is(tmp_path, source, counting, here, told):
    kept = tmp_path / "out.counts"
    for resume, broken in ((False, False), (True, True)):
        with pytest.raises(KeyboardInterrupt):
            total(Workers(kept=kept), working(stop_at, "0004.csv", told, counting), source)
        for path in (tmp_path / "told").iterdir():
            path.unlink()
        if broken:
            for path in kept.iterdir():
                path.write_bytes(path.read_bytes()[:100])
        again = Workers(kept=kept, resume=resume)
        assert total(again, working(count_and_tell, told, counting), source) == here
        assert told_of(told) == {f"{number:04}.csv": 1 for number in range(N_PARTS)}
        for path in (tmp_path / "told").iterdir():
            path.unlink()


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
    assert cluster.checked_address(f"tcp://{host}:8786") == f"tcp://{host}:8786"
    assert cluster.checked_address(f"{host}:8786") == f"tcp://{host}:8786"


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.1", "scheduler.example", "[fe80::1]"])
def test_tls_goes_anywhere(host):
    assert cluster.checked_address(f"tls://{host}:8786") == f"tls://{host}:8786"


@pytest.mark.usefixtures("no_socket")
def test_tls_without_certificates_is_refused_before_a_connection():
    pytest.importorskip("distributed")
    with pytest.raises(UsageError, match=r"--cluster tls://host:1: Dask's configuration names no certificates: set "):
        next(cluster.on_cluster("tls://host:1", count_part, []))


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
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with socket.socket() as taken:  # nobody listens at its port
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        study = write_parts(tmp_path, log_rows(200), 2)
        assert main(["compare", str(study), "--cluster", address, "--out", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"policysim: --cluster {address}: there is no Dask cluster: ")
    assert not (tmp_path / "out").exists()


@CLUSTER
def test_somebody_who_listens_and_is_no_cluster_is_told(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as other:
        address = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        with pytest.raises(UsageError, match=f"{address}: there is no Dask cluster: who listens there does not answer"):
            next(cluster.on_cluster(address, count_part, [tmp_path]))


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
    said = capsys.readouterr().err
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


@pytest.mark.usefixtures("source")
def test_who_interrupts_a_count_is_told_how_to_go_on(tmp_path, monkeypatch, capsys):
    asked = ["compare", str(tmp_path / "study.toml"), "--out", str(tmp_path / "out"), "--workers", "1"]
    done = []

    def stop(counting, part):
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(part)
        return count_part(counting, part)

    monkeypatch.setattr("policysim.logs.counted_log.count_part", stop)
    assert main(asked) == 130
    assert capsys.readouterr().err == (
        "policysim: interrupted; no result was written; with --resume the same command takes the files that were done\n"
    )
    assert len(list((tmp_path / "out.counts").iterdir())) == 3
    assert not (tmp_path / "out").exists()


def test_another_file_in_the_folder_of_what_is_kept_stays(tmp_path, source, counting, here):
    kept = tmp_path / "out.counts"
    kept.mkdir()
    (kept / "mine.npz").touch()
    assert total(Workers(kept=kept), working(count_part, counting), source) == here
    assert [path.name for path in kept.iterdir()] == ["mine.npz"]


def test_options_that_cannot_be(tmp_path, capsys):
    study = str(write_parts(tmp_path, log_rows(200), 2))
    for options, said in (
        (["--workers", "0"], "--workers must be a whole number >= 1, got '0'"),
        (["--workers", "2", "--cluster", "a:1"], "--workers does not go with --cluster, which has workers of its own"),
        (["--resume"], "--resume only goes with --workers or --cluster"),
    ):
        assert main(["compare", study, *options]) == 2
        assert capsys.readouterr().err == f"policysim: {said}\n"
    for study, options in (("covid", []), ("covid", ["--horizon", "3"]), ("sock-groups", [])):
        assert main(["compare", study, "--workers", "2", *options]) == 2
        assert "--workers " in capsys.readouterr().err


def test_sums_of_counts_do_not_overflow():
    kinds = Kinds([])
    row = np.zeros((1, 5), dtype=np.int64)
    for _ in range(3):
        kinds.add(row, np.array([2**61]))
    assert kinds.sorted()[1].tolist() == [3 * 2**61]
