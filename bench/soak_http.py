"""HTTP for serve_soak.py: connections that can break the protocol, and the form of errors."""
import asyncio
import collections
import contextlib
import json
import socket
import struct

GONE = (ConnectionError, EOFError)

Answer = collections.namedtuple("Answer", "status headers body")


def request(method, path, body=None, headers=()):
    data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    length = [] if body is None else [f"Content-Length: {len(data)}"]
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: soak", *length, *headers, "", ""]).encode() + data


class Connection:
    def __init__(self, port, receive_bytes=0):
        self.port, self.receive_bytes = port, receive_bytes

    async def __aenter__(self):
        self.socket = socket.socket()
        try:
            self.socket.setblocking(False)
            if self.receive_bytes:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.receive_bytes)
            await asyncio.get_running_loop().sock_connect(self.socket, ("127.0.0.1", self.port))
            self.reader, self.writer = await asyncio.open_connection(sock=self.socket,
                                                                     limit=self.receive_bytes or 1 << 20)
        except BaseException:
            self.socket.close()
            raise
        return self

    async def __aexit__(self, *_):
        self.writer.transport.abort()

    async def send(self, *pieces, pause=0):
        with contextlib.suppress(ConnectionError):  # a server that refuses may close before the end
            for piece in pieces:
                self.writer.write(piece)
                await self.writer.drain()
                await asyncio.sleep(pause)

    async def answer(self, is_head=False):
        lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
        status, body = int(lines[0].split()[1]), b""
        if is_head and status == 200:  # a server that is crowded refuses before it reads the method
            pass
        elif "content-length" in headers:
            body = await self.reader.readexactly(int(headers["content-length"]))
        elif headers.get("transfer-encoding") == "chunked":
            while size := int(await self.reader.readuntil(b"\r\n"), 16):
                body += (await self.reader.readexactly(size + 2))[:-2]
            await self.reader.readuntil(b"\r\n")
        else:
            body = await self.reader.read()
        return Answer(status, headers, body)

    async def ask(self, *pieces, pause=0, is_head=False):
        """Reads while it sends."""
        sending = asyncio.create_task(self.send(*pieces, pause=pause))
        try:
            return await self.answer(is_head)
        finally:
            sending.cancel()

    def reset(self):
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


def error_message(answer):
    """The message of an error in OpenAI's form; empty: the answer has another form."""
    try:
        error = json.loads(answer.body)["error"]
        has_form = answer.headers["content-type"] == "application/json" and isinstance(error["type"], str)
        return error["message"] if has_form and {"param", "code"} <= error.keys() else ""
    except (ValueError, KeyError, TypeError):
        return ""


def is_crowded(answer):
    """The server has too many connections, or too many bytes of requests."""
    return answer.status == 503 and "as many" in error_message(answer)


def short(value, most=150):
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= most else text[:most] + "…"
