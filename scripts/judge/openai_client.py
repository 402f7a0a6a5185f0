#!/usr/bin/env python3
"""Asks `skein serve` through the openai client of PyPI, as its documentation shows, and checks each answer.

    scripts/judge/openai_client.py SKEIN MODEL       needs pip install openai; scripts/judge.sh openai_client does so

A chat is asked where the model's tokenizer has a chat template. Exit code 1: an answer is not what it should be.
"""

import asyncio
import contextlib
import subprocess
import sys

import openai

KEY = "sk-judge-0123456789abcdef"
checks = 0


def check(holds, what):
    global checks
    checks += 1
    if not holds:
        sys.exit(f"openai_client: {what}")


def raises(kind, words, call):
    try:
        call()
    except kind as error:
        check(words in str(error), f"{kind.__name__} says '{error}', expected '{words}' in it")
        return error
    sys.exit(f"openai_client: expected {kind.__name__}")


@contextlib.contextmanager
def serving(skein, model):
    command = [skein, "serve", model, "--listen", "127.0.0.1:0", "--served-model-name", "judged"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={"SKEIN_API_KEY": KEY})
    try:
        yield next(line for line in server.stderr if line.startswith("serving on ")).split()[-1]
    finally:
        server.terminate()
        check(server.wait(60) == 0, "the server does not end well")


def completions(client):
    whole = client.completions.create(model="judged", prompt="The", max_tokens=12, temperature=0, logprobs=2)
    choice = whole.choices[0]
    check(whole.object == "text_completion" and choice.finish_reason in ("length", "stop"), "completion")
    check(whole.usage.completion_tokens == len(choice.logprobs.tokens), "usage counts the tokens")
    check(all(len(top) >= 2 for top in choice.logprobs.top_logprobs), "two of the likeliest tokens")
    chunks = list(client.completions.create(model="judged", prompt="The", max_tokens=12, temperature=0, stream=True,
                                            stream_options={"include_usage": True}))
    check("".join(c.choices[0].text for c in chunks if c.choices) == choice.text, "a stream is the same text")
    check(chunks[-1].usage.total_tokens == whole.usage.total_tokens, "a stream ends with its usage")
    several = client.completions.create(model="judged", prompt=["The", "A"], max_tokens=4, n=2, seed=7, temperature=1)
    check([c.index for c in several.choices] == [0, 1, 2, 3], "two prompts, two texts each")
    again = client.completions.create(model="judged", prompt=["The", "A"], max_tokens=4, n=2, seed=7, temperature=1)
    check([c.text for c in several.choices] == [c.text for c in again.choices], "a seed gives the same texts")
    scored = client.completions.create(model="judged", prompt="The end", max_tokens=0, echo=True, logprobs=0)
    check(scored.choices[0].text == "The end" and scored.choices[0].logprobs.token_logprobs[0] is None, "echo")
    stopped = client.completions.create(model="judged", prompt="The", max_tokens=12, temperature=0,
                                        stop=choice.text[2:5])
    check(stopped.choices[0].text == choice.text[:choice.text.index(choice.text[2:5])], "stop is not in the text")
    check(stopped.choices[0].finish_reason == "stop", "finish_reason of a stop")


def errors(client, url):
    raises(openai.BadRequestError, "suffix",
           lambda: client.completions.create(model="judged", prompt="a", suffix="b"))
    raises(openai.NotFoundError, "another", lambda: client.completions.create(model="another", prompt="a"))
    raises(openai.BadRequestError, "1000000",
           lambda: client.completions.create(model="judged", prompt="a", max_tokens=10**6))
    raises(openai.AuthenticationError, "key",
           lambda: openai.OpenAI(base_url=url, api_key="wrong", max_retries=0).models.list())


def chats(client):
    messages = [{"role": "user", "content": "Hello"}]
    try:
        whole = client.chat.completions.create(model="judged", messages=messages, max_tokens=8, temperature=0)
    except openai.BadRequestError as error:
        check("chat template" in str(error), f"a chat is refused: {error}")
        print(f"no chat was asked: {error}")
        return
    chunks = list(client.chat.completions.create(model="judged", messages=messages, max_tokens=8, temperature=0,
                                                 stream=True))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    check(text == whole.choices[0].message.content, "a stream of a chat is the same text")
    check(whole.choices[0].message.role == "assistant", "the role of an answer")


async def many(url):
    client = openai.AsyncOpenAI(base_url=url, api_key=KEY)
    async def ask(i):
        return await client.completions.create(model="judged", prompt=f"{i % 4} is", max_tokens=6, temperature=0)
    answers = await asyncio.gather(*[ask(i) for i in range(64)])
    for i, answer in enumerate(answers):
        check(answer.choices[0].text == answers[i % 4].choices[0].text, "an answer does not depend on its company")
    await client.close()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with serving(*sys.argv[1:]) as url:
        client = openai.OpenAI(base_url=url, api_key=KEY)
        models = client.models.list().data
        check([model.id for model in models] == ["judged"], "the list of models")
        check(client.models.retrieve("judged").id == "judged", "a model by name")
        completions(client)
        errors(client, url)
        chats(client)
        asyncio.run(many(url))
    print(f"openai {openai.__version__}: {checks} checks, all hold")


if __name__ == "__main__":
    main()
