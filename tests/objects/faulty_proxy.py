#!/usr/bin/env python3
"""A proxy before an object store that behaves as stores do on bad days, by turns:

  503 Slow Down · a connection reset · a body that ends early · one that stalls (once, it costs 20 s)

Every `period`-th request of a kind is struck; of 0 none. `on_request` is called with each; `watch(after)` before
and after one that changes something is handed on. Only for the tests.
"""
import http.client
import http.server
import socket
import struct
import threading

FAULTS = ("slow_down", "reset", "cut", "stall")


class FaultyProxy:
    def __init__(self, port_of_store, period=0, faults=FAULTS, on_request=lambda method, path: None,
                 watch=lambda after: None):
        self.counts = dict.fromkeys(FAULTS, 0)
        self.num_requests = 0
        lock = threading.Lock()
        seen = {}  # requests by their method
        proxy = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def fault(self):
                with lock:
                    proxy.num_requests += 1
                    seen[self.command] = seen.get(self.command, 0) + 1
                    if not period or seen[self.command] % period:
                        return None
                    possible = faults if self.command == "GET" else FAULTS[:2]  # others have no body to cut
                    which = possible[seen[self.command] // period % len(possible)]
                    if which == "stall" and proxy.counts["stall"]:
                        which = "cut"
                    proxy.counts[which] += 1
                    return which

            def reset(self):
                linger = struct.pack("ii", 1, 0)  # closing sends a reset
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
                self.connection.close()

            def body(self):
                if self.headers.get("Transfer-Encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("Content-Length", 0)))
                found = b""
                while size := int(self.rfile.readline().split(b";")[0], 16):
                    found += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return found

            def forward(self):
                body = self.body()
                on_request(self.command, self.path)
                fault = self.fault()
                if fault == "reset":
                    return self.reset()
                if fault == "slow_down":
                    text = b"<Error><Code>SlowDown</Code><Message>Reduce your request rate.</Message></Error>"
                    self.send_response(503)
                    self.send_header("Content-Type", "application/xml")
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(text)
                    return None
                changes = self.command in ("PUT", "POST", "DELETE")
                if changes:
                    watch(after=False)
                store = http.client.HTTPConnection("127.0.0.1", port_of_store)
                headers = {name: value for name, value in self.headers.items()
                           if name.lower() not in ("transfer-encoding", "expect", "content-length")}
                store.request(self.command, self.path, body, headers)
                answer = store.getresponse()
                found = answer.read()
                if changes:
                    watch(after=True)
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection", "server", "date"):
                        self.send_header(name, value)
                length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(found))
                self.send_header("Content-Length", length or "0")
                self.end_headers()
                if fault is None or len(found) < 2:
                    self.wfile.write(found)
                    return None
                self.wfile.write(found[: len(found) // 2])
                self.wfile.flush()
                if fault == "stall":
                    self.connection.settimeout(60)
                    try:
                        self.connection.recv(1)  # until the client has had enough
                    except OSError:
                        pass
                return self.reset()

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = forward

        class Server(http.server.ThreadingHTTPServer):
            def handle_error(self, *_):  # a client that was killed
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
