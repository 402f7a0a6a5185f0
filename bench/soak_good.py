"""The good clients of serve_soak.py: their questions, and what the answers mean."""
import asyncio
import json
import os
import re

from soak_http import error_message, is_crowded, request, short

NAME = "soaked"  # of the model
MOST_RETRIES = 200  # after 429
PROMPTS = ["The", "Once upon a time", "Größe, 東京, 🙂 naïve", "def f(x):\n    return x\n", "A run resumes " * 12]
STYLES = [
    {"temperature": 0},
    {"temperature": 0, "logprobs": 5},
    {"seed": 7, "temperature": 0.8, "top_p": 0.9, "n": 2},
    {"seed": 11, "top_k": 20, "repetition_penalty": 1.2, "presence_penalty": 0.5, "frequency_penalty": 0.5},
    {"seed": 3, "min_p": 0.05, "ignore_eos": True, "logprobs": 1},
    {"seed": 5, "stop": [" the", "\n"], "echo": True},
]


class Question:
    def __init__(self, method, path, body=None):
        self.method, self.path, self.body = method, path, body
        self.bytes = request(method, path, body)
        self.expected = None

    def __str__(self):
        return f"{self.method} {self.path} {short(self.body or '')}"

    @property
    def is_head(self):
        return self.method == "HEAD"

    def streamed(self):
        return Question(self.method, self.path, {**self.body, "stream": True,
                                                 "stream_options": {"include_usage": True}})

    def meaning(self, answer):
        """The content of an answer, without ids and times. A stream has that of the whole answer."""
        text = answer.body.decode()
        if self.path == "/metrics":
            return {"is_there": "texts_running" in metrics_of(text)}
        if self.is_head:
            return {"is_there": int(answer.headers["content-length"]) > 0}
        if self.body and self.body.get("stream"):
            *events, last = [line.removeprefix("data: ") for line in text.split("\n") if line]
            return merged([json.loads(event) for event in events]) if last == "[DONE]" else {"end": last}
        content = json.loads(text)
        return merged([content]) if "choices" in content else without_times(content)


def merged(events):
    texts, usage = {}, None
    for event in events:
        if "error" in event:
            return event
        usage = event.get("usage") or usage
        for part in event["choices"]:
            text = texts.setdefault(part["index"], {"text": "", "finish_reason": None})
            text["text"] += part.get("text") or (part.get("message") or part.get("delta") or {}).get("content") or ""
            text["finish_reason"] = part["finish_reason"] or text["finish_reason"]
            for key, values in (part["logprobs"] or {}).items():
                text[key] = text.get(key, []) + (values or [])
    return {"texts": [texts[index] for index in sorted(texts)], "usage": usage}


def without_times(value):
    if isinstance(value, list):
        return [without_times(item) for item in value]
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key != "created"}
    return value


def metrics_of(page):
    return {name: int(value) for name, value in re.findall(r"^skein_serve_(\S+) (\d+)$", page, re.MULTILINE)}


def questions_of(ids, has_chats):
    """By kind. `ids` are the tokens of PROMPTS[0] and of PROMPTS[1]."""
    def completions(prompts, styles, **options):
        return [Question("POST", "/v1/completions", {"model": NAME, "prompt": prompt, "max_tokens": 24, **style,
                                                     **options}) for prompt in prompts for style in styles]
    biased = {"seed": 9, "logit_bias": {str(ids[0][-1]): -100, str(ids[1][-1]): 5}, "logprobs": 0}
    questions = {
        "completion": completions(PROMPTS, STYLES) + completions(PROMPTS[:1], [biased]),
        "list": completions([PROMPTS[:4], PROMPTS[1:3], ids], STYLES[:3], max_tokens=12, n=1),
        "score": [question for most in (0, 1)
                  for question in completions([PROMPTS[2], PROMPTS[4], PROMPTS[:3], ids[1]], [{"temperature": 0}],
                                              echo=True, logprobs=2, max_tokens=most)],
    }
    if has_chats:
        questions["chat"] = [
            Question("POST", "/v1/chat/completions", {"messages": messages, "max_tokens": 16, **style})
            for messages in ([{"role": "user", "content": "Hello"}],
                             [{"role": "system", "content": "Be kind."}, {"role": "user", "content": PROMPTS[2]}])
            for style in (*STYLES[:1], *STYLES[2:4], {"temperature": 0, "logprobs": True, "top_logprobs": 3})]
    for kind in list(questions):
        questions[f"{kind} stream"] = [question.streamed() for question in questions[kind]]
    questions["tokens"] = [Question("POST", "/tokenize", {"prompt": prompt}) for prompt in PROMPTS]
    questions["tokens"] += [Question("POST", "/detokenize", {"tokens": tokens}) for tokens in ids]
    questions["page"] = [Question("GET", path) for path in
                         ("/health", "/metrics", "/v1/models", f"/v1/models/{NAME}", "/tokenizer_info")]
    questions["page"].append(Question("HEAD", "/v1/models"))
    return questions


async def good(soak, kind, random):
    """Some questions on one connection."""
    async with soak.connect() as connection:
        for question in random.choices(soak.questions[kind], k=random.randint(1, 5)):
            if soak.is_over():
                return
            answer = await answer_in_time(soak, kind, connection, question)
            if is_crowded(answer):
                return
            check(soak, kind, question, answer)
            if answer.status != 200:
                return


async def answer_in_time(soak, kind, connection, question):
    for _ in range(MOST_RETRIES):
        answer = await connection.ask(question.bytes, is_head=question.is_head)
        soak.note(kind, answer.status)
        if answer.status != 429:
            return answer
        if not error_message(answer):
            soak.fail(f"{kind}: 429 in another form: {short(answer.body)}")
        await asyncio.sleep(float(answer.headers["retry-after"]))
    return answer


def difference(expected, found):
    one, other = (json.dumps(value, ensure_ascii=False, sort_keys=True) for value in (expected, found))
    place = max(0, len(os.path.commonprefix([one, other])) - 20)
    return f"…{short(one[place:], 80)} became …{short(other[place:], 80)}"


def check(soak, kind, question, answer):
    if answer.status != 200:
        soak.fail(f"{kind}: {question} got {answer.status}: {short(answer.body)}")
    elif (found := question.meaning(answer)) != question.expected:
        soak.fail(f"{kind}: the answer to {question} differs: {difference(question.expected, found)}")


async def reload(soak, kind, random):
    async with soak.connect() as connection:
        answer = await connection.ask(request("POST", "/reload", {}))
        soak.note(kind, answer.status)
        if answer.status != 200 and not is_crowded(answer):
            soak.fail(f"reload: got {answer.status}: {short(answer.body)}")
