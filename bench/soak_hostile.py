"""The hostile clients of serve_soak.py."""
import asyncio
import json

from soak_good import check
from soak_http import GONE, is_crowded, request, short

BODY_BYTES, HEADER_BYTES = 8 << 20, 16 << 10  # the server's limits
MOST_FLOOD = 1000

PATHS = ("/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize")
MESSAGES = [{"role": "user", "content": "a"}]
IS_WRONG = {
    "prompt": [5, None, {}, [], [[]], [1.5], [None], ["a", 1], [1, "a"], True],
    "max_tokens": ["7", -1, 0, 1.5, 2 ** 31, 2 ** 64, [], True],
    "temperature": ["hot", -0.1, 101, [], True],
    "top_p": ["x", -0.1, 1.1],
    "top_k": [-2, 0.5, "1"],
    "min_p": [-1, 2, {}],
    "repetition_penalty": [0, -1, "x"],
    "presence_penalty": [3, "x"],
    "frequency_penalty": [-3, []],
    "n": [0, -1, 129, "2", 1.5],
    "stop": [1, [1], {}, ["a"] * 65],
    "stop_token_ids": ["x", [-1], [1.5], 7],
    "seed": ["x", 1.5, 2 ** 63, []],
    "stream": ["yes", 1],
    "stream_options": [{}, 5, []],
    "echo": [1, "true"],
    "logprobs": [21, -1, "5", 1.5],
    "logit_bias": [5, [], {"x": 1}, {"1": "a"}, {"1": 101}, {"-1": 1}, {"99999999999": 1}],
    "ignore_eos": [1, []],
    "add_special_tokens": ["no"],
    "model": [5, []],
    "best_of": [4, "x"],
}
IS_WRONG_IN_CHATS = {
    "messages": [None, 5, [], [5], [{"content": 5}], [{"role": 5, "content": "a"}], {}],
    "top_logprobs": [1, 21, "x"],
    "max_completion_tokens": [0, -1, "x"],
    "tools": [[{"type": "function"}]],
    "response_format": [{"type": "json_object"}],
}


def malformed(soak, random):
    right = json.dumps({"prompt": "a", "max_tokens": 1}).encode()
    body = random.choice([
        b"", b"{", b"[]", b"5", b'"a"', b"null", right[:-1], right + b"}", right + b"\0", b'{"prompt": "\xff\xfe"}',
        b'{"prompt": "\\ud800"}', b'{"prompt": "a", "temperature": NaN}', b'{"prompt": "a", "temperature": 1e999}',
        b'{"prompt": ' + b"[" * 100_000, b'{"prompt": ' + b"[" * 300 + b"]" * 300 + b"}", b"{'prompt': 'a'}",
        b'{"prompt": "a" "n": 1}', b'{"prompt": "a\n"}', random.randbytes(random.randint(1, 5000))])
    return request("POST", random.choice(PATHS), body), [400]


def wrong_type(soak, random):
    is_chat = random.random() < 0.3
    name, values = random.choice(list((IS_WRONG_IN_CHATS if is_chat else IS_WRONG).items()))
    body = {"messages": MESSAGES} if is_chat else {"prompt": "a", "max_tokens": 2}
    body[name] = random.choice(values)
    return request("POST", PATHS[is_chat], body), [400]


def unknown_field(soak, random):
    path = random.choice(PATHS)
    body = {"/v1/completions": {"prompt": "a"}, "/tokenize": {"prompt": "a"}, "/detokenize": {"tokens": [1]},
            "/v1/chat/completions": {"messages": MESSAGES}}[path]
    name = random.choice(["max_token", "suffix", "Prompt", "", "é" * 100, "\u0000", "x" * 100_000])
    return request("POST", path, {**body, name: random.choice([1, "a", [], {}])}), [400]


def too_long(soak, random):
    length, id_ = soak.max_length, soak.questions["tokens"][-1].body["tokens"][-1]
    body = random.choice([
        lambda: {"prompt": [id_] * (length + 1)}, lambda: {"prompt": [id_] * length, "max_tokens": 1},
        lambda: {"prompt": [[id_], [id_] * 300_000]}, lambda: {"prompt": "word " * 200_000},
        lambda: {"prompt": "a" * (2 << 20)}, lambda: {"prompt": "a", "max_tokens": length},
        lambda: {"prompt": [id_] * (length + 2), "max_tokens": 1, "echo": True, "logprobs": 1},
        lambda: {"prompt": ["a"] * 41, "n": 128}, lambda: {"prompt": ["a"] * 5000}])()
    return request("POST", "/v1/completions", body), [400]


def foreign_id(soak, random):
    id_ = random.choice([soak.vocab_size, soak.vocab_size + 1, 2 ** 31 - 1, 2 ** 31, 2 ** 63, 2 ** 70, -1, 0.5])
    path, body = random.choice([
        ("/v1/completions", {"prompt": [id_]}), ("/v1/completions", {"prompt": [[1], [1, id_]], "echo": True}),
        ("/v1/completions", {"prompt": "a", "logit_bias": {str(id_): 1}}), ("/detokenize", {"tokens": [1, id_]})])
    return request("POST", path, body), [400]


def wrong_page(soak, random):
    known = {"/v1/completions": "POST", "/v1/models": "GET", "/health": "GET", "/reload": "POST", "/tokenize": "POST"}
    path = random.choice(list(known))
    return random.choice([
        (request(random.choice(["PUT", "PATCH", "DELETE", "OPTIONS"]), path), [405]),
        (request("GET" if known[path] == "POST" else "POST", path), [405]),
        (request(random.choice(["TRACE", "CONNECT", "LOCK", "BREW"]), path), [400, 501]),
        (request("GET", random.choice(["/", "/v1", "/v1/models/other", "/../etc/passwd", "//health", "/health/",
                                       "/%2e%2e/%2e%2e/etc", "/v1/completions?a=b/..", "/" + "a" * 5000])), [404, 405]),
        (request("POST", "/v1/completions", {"prompt": "a", "model": "other"}), [404])])


def wrong_protocol(soak, random):
    head = "POST /tokenize HTTP/1.1\r\nHost: soak\r\n"
    text, status = random.choice([
        ("GET /health HTTP/2.0\r\nHost: soak\r\n\r\n", 505), ("GET /health HTTP/1.1\r\n\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400), ("GET /health\r\n\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400), ("GET health HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        ("GET /health HTTP/1.1\r\nHost: a b\r\n\r\n", 400), ("\r\n" * 100, 400),
        (head + "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}", 400), (head + "Content-Length: -1\r\n\r\n", 400),
        (head + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        (head + "Content-Length: 99999999999999999999999\r\n\r\n", 400), (head + "Bad Name: 1\r\n\r\n", 400),
        (head + "Transfer-Encoding: gzip\r\n\r\n", 501), (head + "Expect: miracles\r\n\r\n", 417),
        (head + "Transfer-Encoding: chunked\r\n\r\nzz\r\n\r\n", 400),
        (head + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}XXXX\r\n\r\n", 400)])
    return text.encode(), [status]


def refused(make, may_close=False):
    async def act(soak, kind, random):
        async with soak.connect() as connection:
            for _ in range(random.randint(1, 4)):
                data, statuses = make(soak, random)
                try:
                    answer = await connection.ask(data)
                except GONE:
                    soak.note(kind, "closed")
                    if not may_close:
                        soak.fail(f"{kind}: {short(data)} got no answer")
                    return
                soak.judge(kind, answer, statuses, data)
                if answer.headers.get("connection") == "close":
                    return
    return act


async def ask_or_close(soak, kind, statuses, *pieces, pause=0):
    async with soak.connect() as connection:
        try:
            answer = await connection.ask(*pieces, pause=pause)
        except GONE:
            return soak.note(kind, "closed")
        soak.judge(kind, answer, statuses, pieces[0])


async def large_head(soak, kind, random):
    lines = random.choice([["X-Large: " + "a" * (2 * HEADER_BYTES)], [f"X-{i}: a" for i in range(3000)]])
    path = random.choice(["/health", "/" + "a" * HEADER_BYTES])
    await ask_or_close(soak, kind, [431], request("GET", path, headers=lines))


async def large_body(soak, kind, random):
    head = request("POST", "/v1/completions", headers=[f"Content-Length: {BODY_BYTES + 1}"])
    pieces = [b"a" * 65536] * random.choice([0, 160])
    await ask_or_close(soak, kind, [413], head, *pieces)


async def endless_body(soak, kind, random):
    head = request("POST", "/v1/completions", headers=["Transfer-Encoding: chunked"])
    await ask_or_close(soak, kind, [413], head, *[b"10000\r\n" + b"a" * 65536 + b"\r\n"] * 160)


async def slow_head(soak, kind, random):
    head = b"GET /health HTTP/1.1\r\nX: " + b"a" * 40
    await ask_or_close(soak, kind, [408], *[bytes([byte]) for byte in head], pause=1)


async def slow_body(soak, kind, random):
    head = request("POST", "/v1/completions", headers=["Content-Length: 1000"])
    await ask_or_close(soak, kind, [408], head, *[b" "] * 60, pause=1)


async def random_bytes(soak, kind, random):
    data = random.randbytes(random.randint(1, 4000)) + random.choice([b"", b"\r\n\r\n"])
    if random.random() < 0.5:
        data = random.choice([b"GET ", b"POST /tokenize HTTP/1.1\r\n", b"\x16\x03\x01\x02\x00"]) + data
    await ask_or_close(soak, kind, [400, 408, 431, 501, 505], data)


async def mutated(soak, kind, random):
    """A good request with some other bytes, which may stay good. One that loses bytes waits for them, until 408."""
    question = random.choice([question for questions in soak.questions.values() for question in questions
                              if question.method != "HEAD"])
    data = bytearray(question.bytes)
    for _ in range(random.randint(1, 4)):
        place, size = random.randrange(len(data)), random.randint(0, 3)
        new = random.choice([random.randbytes(size), random.choices(b"0123456789-.eE\"\\{}[],: \r\n", k=size)])
        data[place:place + len(new)] = new
    if random.random() < 0.02:
        del data[random.randrange(len(data)):]
    await ask_or_close(soak, kind, [200, 400, 404, 405, 408, 413, 417, 429, 431, 501, 505], bytes(data))


def long_answer(**options):
    return request("POST", "/v1/completions", {"prompt": "The", "max_tokens": 192, "seed": 1, "ignore_eos": True,
                                               **options})


async def begun(soak, kind, connection):
    """Whether an answer to a good request of a hostile client comes; a busy server may refuse it."""
    status = int((await connection.reader.readexactly(12))[9:])
    soak.note(kind, status)
    if status not in (200, 429, 503):
        soak.fail(f"{kind}: a good request got {status}")
    return status == 200


def large_stream(soak):
    """More than the kernel and the server hold for a reader that does not read, if there are chats."""
    options = {"max_tokens": 216, "seed": 1, "ignore_eos": True, "stream": True, "n": 12}
    if "chat" not in soak.questions:
        return request("POST", "/v1/completions", {"prompt": "The", "logprobs": 20, **options})
    return request("POST", "/v1/chat/completions", {"messages": MESSAGES, "logprobs": True, "top_logprobs": 20,
                                                    **options})


async def slow_reader(soak, kind, random):
    async with soak.connect(receive_bytes=2048) as connection:
        await connection.send(large_stream(soak))
        try:
            if not await begun(soak, kind, connection):
                return
            for _ in range(random.choice([5, 60])):
                if not await connection.reader.read(1):
                    raise EOFError
                await asyncio.sleep(1)
            soak.note(kind, "left")
        except GONE:
            soak.note(kind, "closed")


async def aborted(soak, kind, random):
    is_stream, end = random.random() < 0.8, random.choice(["close", "reset", "half"])
    async with soak.connect() as connection:
        await connection.send(long_answer(stream=is_stream, n=random.randint(1, 4)))
        try:
            if not is_stream:
                await asyncio.sleep(random.random())
            elif await begun(soak, kind, connection):
                await connection.reader.read(random.randint(1, 5000))
            soak.note(kind, "left")
            if end == "reset":
                connection.reset()
            elif end == "half":
                connection.writer.write_eof()
                await connection.reader.read()
        except GONE:
            soak.note(kind, "closed")


async def silent(soak, kind, random):
    async with soak.connect() as connection:
        try:
            got = await connection.reader.read()
        except ConnectionError:
            got = b""
        soak.note(kind, "closed")
        if got and b" 503 " not in got:
            soak.fail(f"{kind}: got {short(got)}")


async def flood(soak, kind, random):
    async def one(number):
        try:
            async with soak.connect() as connection:
                if number % 3 == 0:
                    soak.judge(kind, await connection.ask(request("GET", "/health")), [200], b"GET /health")
                else:
                    await connection.send(*[b"GET /health HT"] * (number % 3 == 1))
                    soak.note(kind, "held")
                await asyncio.sleep(2)
        except GONE:
            soak.note(kind, "closed")
    await asyncio.gather(*map(one, range(random.choice([100, 500, MOST_FLOOD]))))


async def pipelined(soak, kind, random):
    """Good requests, then a wrong one, then a good one that must get no answer."""
    questions = random.choices(soak.questions["page"] + soak.questions["tokens"], k=random.randint(0, 12))
    wrong, statuses = wrong_protocol(soak, random)
    async with soak.connect() as connection:
        await connection.send(b"".join([*[question.bytes for question in questions], wrong, request("GET", "/health")]))
        try:
            for question in questions:
                answer = await connection.answer(question.is_head)
                if is_crowded(answer):
                    return soak.note(kind, 503)
                check(soak, kind, question, answer)
            soak.judge(kind, await connection.answer(), statuses, wrong)
            if rest := await connection.reader.read():
                soak.fail(f"{kind}: after {short(wrong)} came {short(rest)}")
        except GONE:
            soak.note(kind, "closed")
