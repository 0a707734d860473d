"""The live page of `surveyor watch`: a read-only server for this machine."""

import contextlib
import hashlib
import http.server
import threading
import urllib.parse
from pathlib import Path

from surveyor.errors import SurveyorError
from surveyor.report import collect, page
from surveyor.runs.api import handle_signals
from surveyor.runs.folder import RunFolder
from surveyor.sweeps.status import FILES, PLAN

HOST = "127.0.0.1"


class Source:
    """The data of a folder, read again when something in it has changed."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._lock, self._version, self._text = threading.Lock(), "", ""

    def now(self) -> tuple[str, str]:
        """Return a version of the folder's state, and its data as JSON."""
        with self._lock:
            version = self._stamp()
            if version != self._version:
                data = collect.collect(self.folder, episodes=False, live=True)
                self._version, self._text = version, page.as_json(data)
            return self._version, self._text

    def _stamp(self) -> str:
        """Return a hash of the sizes and times of all files, and of the runs being trained."""
        found = []
        for name in (*FILES, PLAN.format("*"), ".lock"):
            for path in sorted([*self.folder.glob(name), *self.folder.glob(f"*/{name}")]):
                with contextlib.suppress(OSError):
                    known = path.stat()
                    held = name == ".lock" and RunFolder(path.parent).is_held()
                    found.append(f"{path} {known.st_size} {known.st_mtime_ns} {held}")
        return hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]


def server(folder: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """Return a server on the loopback address; raise if there are no runs or the port is taken."""
    source = Source(folder)
    source.now()  # raises if there is nothing to show

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urllib.parse.urlsplit(self.path)
            host = (self.headers.get("Host") or "").rpartition(":")[0]
            if host not in (HOST, "localhost"):  # DNS rebinding from other sites
                return self.send_error(403)
            if address.path not in ("/", "/data.json"):
                return self.send_error(404)
            (version, text), kind = source.now(), "application/json"
            if address.path == "/":
                text, kind = page.render(text), "text/html; charset=utf-8"
            elif urllib.parse.parse_qs(address.query).get("not") == [version]:
                self.send_response(204)
                return self.end_headers()
            content = text.encode()
            self.send_response(200)
            headers = {"Content-Type": kind, "Content-Length": str(len(content))}
            headers |= {"Cache-Control": "no-store", "X-Version": version}
            for header in headers.items():
                self.send_header(*header)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: object) -> None:
            """Keep the terminal free."""

    class Server(http.server.ThreadingHTTPServer):
        def handle_error(self, request: object, client_address: object) -> None:
            """Ignore errors: a tab was closed, or the folder is being moved."""

    try:
        return Server((HOST, port), Handler)
    except OSError as error:
        raise SurveyorError(f"Port {port} cannot be used: {error.strerror}.") from None


def serve(folder: Path, port: int) -> None:
    """Serve the page of a folder until Ctrl-C."""
    page.plotly()
    stop = threading.Event()
    with server(folder, port) as found, handle_signals(lambda *_: stop.set()):
        threading.Thread(target=found.serve_forever, daemon=True).start()
        address = f"http://{HOST}:{found.server_address[1]}/"
        print(f"{address} shows {folder}; Ctrl-C ends it.", flush=True)
        stop.wait()
        found.shutdown()
