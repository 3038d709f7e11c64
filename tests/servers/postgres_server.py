"""A PostgreSQL server of its own in a temporary folder, with Debian's programs.

with PostgresServer() as server:
    psycopg.connect(server.url)
"""

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self

_PASSWORD = "s3cret-password"
_USER = "worker"


class PostgresServer:
    """A database server that can be stopped and started again.

    Args:
        is_durable: what it stored survives a failure of the machine; slower.
        host: the address at which it listens.
    """

    def __init__(self, is_durable: bool = False, host: str = "127.0.0.1") -> None:
        self._host = host
        self._settings = "" if is_durable else "-c fsync=off"
        # The server refuses to run as root. The user that Debian makes for it cannot enter pytest's
        # folders.
        self._owner = pwd.getpwnam("postgres") if os.geteuid() == 0 else None
        self._home = Path(tempfile.mkdtemp())
        if self._owner is not None:
            os.chown(self._home, self._owner.pw_uid, self._owner.pw_gid)
        with socket.socket() as probe:
            probe.bind((host, 0))
            self.port = probe.getsockname()[1]
        self.url = f"postgresql://{_USER}:{_PASSWORD}@{host}:{self.port}/postgres"
        self.password = _PASSWORD

    def __enter__(self) -> Self:
        password = self._home / "password"
        password.write_text(_PASSWORD)
        password.chmod(0o644)
        self._run(
            "initdb",
            "-U",
            _USER,
            "-A",
            "scram-sha-256",
            "--pwfile",
            str(password),
            "--no-sync",
        )
        if self._host != "127.0.0.1":
            with (self._home / "data" / "pg_hba.conf").open("a") as rules:
                rules.write("host all all samenet scram-sha-256\n")
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()
        shutil.rmtree(self._home)

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        options = f"-p {self.port} -h {self._host} -k '' {self._settings}"
        self._run("pg_ctl", "start", "-w", "-o", options, "-l", str(self._home / "server.log"))

    def stop(self) -> None:
        """Stop the server at once, as a crash would."""
        self._run("pg_ctl", "stop", "-m", "immediate")

    def _run(self, program: str, *arguments: str) -> None:
        # Debian keeps the server's programs out of PATH.
        path = os.pathsep.join(
            [*map(str, Path("/usr/lib/postgresql").glob("*/bin")), os.environ["PATH"]]
        )
        found = shutil.which(program, path=path)
        assert found is not None, f"{program} is missing: apt-get install postgresql"
        environment = {
            "PATH": path,
            "PGDATA": str(self._home / "data"),
            "LC_ALL": "C.UTF-8",
        }
        uid = None if self._owner is None else self._owner.pw_uid
        gid = None if self._owner is None else self._owner.pw_gid
        # Into a file: a pipe would stay open as long as the server runs.
        with (self._home / "programs.log").open("ab") as log:
            subprocess.run(
                [found, *arguments],
                check=True,
                env=environment,
                cwd=self._home,
                user=uid,
                group=gid,
                stdout=log,
                stderr=log,
            )
