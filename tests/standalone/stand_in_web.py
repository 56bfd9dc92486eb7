"""A web server in place of the real one. Arguments: port, and the code that /readyz answers."""

import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

READYZ = int(sys.argv[2])


class Answers(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(READYZ if self.path == "/readyz" else 200)
        self.end_headers()
        self.wfile.write(b"no worker is alive" if READYZ >= 500 else b"ok")

    def log_message(self, *words: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Answers).serve_forever()
