"""The real OpenAI client against the shipped pool: answers, streams, choices, logprobs, usage, errors."""

import json
from concurrent.futures import ThreadPoolExecutor

import openai
import pytest

MODEL = "A-arith"
PROMPT = "A347+085="
ANSWER = "2340"  # 347 + 85 = 432, least significant digit first, to four places: models/README.md.


def chat(client, content=PROMPT, **more):
    return client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": content}], **more)


def complete(client, prompt=PROMPT, **more):
    return client.completions.create(model=MODEL, prompt=prompt, **more)


@pytest.mark.parametrize("model,prompt,answer", [
    ("A-arith", "A347+085=", "2340"),
    ("A-string", "Spgiyrko=", "gikopry"),
    ("A-roman", "N0247=", "CCXLVII"),
    ("A-bracket", "B([{(=", ")}])"),
    ("A-date", "D40-12-14+4=", "14Apr41"),
    ("B-count", "Cxnxx?xn=", "31x"),
    ("C-romanlc", "N0247=", "ccxlvii"),
    ("C-fecha", "D40-12-14+4=", "14Abr41"),
    ("C-sortdesc", "Slaotnid=", "tonlida"),
])
def test_each_model_does_its_task(client, model, prompt, answer):
    reply = client.completions.create(model=model, prompt=prompt, temperature=0)
    assert reply.choices[0].text == answer
    assert reply.choices[0].finish_reason == "stop"


def test_a_chat_is_answered(client):
    reply = chat(client)
    choice = reply.choices[0]
    assert (choice.message.role, choice.message.content, choice.finish_reason) == ("assistant", ANSWER, "stop")
    assert reply.model == MODEL and reply.object == "chat.completion" and reply.id.startswith("chatcmpl-")
    assert reply.usage.completion_tokens == 4
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + 4
    assert reply.usage.prompt_tokens_details.cached_tokens >= 0


def test_content_may_be_a_list_of_parts_and_the_role_developer(client):
    parts = [{"type": "text", "text": PROMPT}]
    reply = client.chat.completions.create(model=MODEL, messages=[
        {"role": "developer", "content": "x"}, {"role": "user", "content": parts}])
    assert reply.choices[0].message.content == ANSWER


def test_a_streamed_chat_is_the_whole_answer(client):
    chunks = list(chat(client, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks) == ANSWER
    assert len({(c.id, c.created, c.model, c.object) for c in chunks}) == 1
    assert [c.choices[0].delta.role for c in chunks if c.choices[0].delta.role] == ["assistant"]
    assert chunks[0].choices[0].delta.role == "assistant"
    reasons = [c.choices[0].finish_reason for c in chunks]
    assert reasons[-1] == "stop" and set(reasons[:-1]) == {None}
    assert chunks[-1].choices[0].delta.content is None
    assert all(c.usage is None for c in chunks)


def test_the_usage_chunk_comes_when_it_is_asked_for(client):
    chunks = list(chat(client, stream=True, stream_options={"include_usage": True}))
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 4
    assert all(c.usage is None for c in chunks[:-1])
    whole = chat(client)
    assert chunks[-1].usage.prompt_tokens == whole.usage.prompt_tokens


def test_a_streamed_completion_is_the_whole_answer(client):
    chunks = list(complete(client, stream=True))
    assert "".join(c.choices[0].text for c in chunks) == ANSWER
    assert {c.object for c in chunks} == {"text_completion"}


@pytest.mark.parametrize("stream", [False, True])
def test_choices_keep_their_index(client, stream):
    reply = chat(client, n=3, stream=stream, temperature=0)
    texts = {0: "", 1: "", 2: ""}
    finishes = []
    for part in (reply if stream else [reply]):
        for choice in part.choices:
            texts[choice.index] += (choice.delta if stream else choice.message).content or ""
            finishes += [choice.index] if choice.finish_reason else []
    assert texts == {0: ANSWER, 1: ANSWER, 2: ANSWER}
    assert sorted(finishes) == [0, 1, 2]
    if not stream:
        assert reply.usage.completion_tokens == 12
        assert reply.usage.prompt_tokens == chat(client).usage.prompt_tokens


def test_prompts_may_be_lists_and_token_ids(client, http):
    reply = complete(client, ["A347+085=", "A356+313="])
    assert [c.text for c in reply.choices] == ["2340", "9660"]
    ids = http.post("/tokenize", json={"model": MODEL, "prompt": PROMPT}).json()["tokens"]
    assert complete(client, ids).choices[0].text == ANSWER
    assert [c.text for c in complete(client, [ids, ids]).choices] == [ANSWER, ANSWER]


def test_echo_puts_the_prompt_first(client):
    assert complete(client, echo=True).choices[0].text == PROMPT + ANSWER
    assert "".join(c.choices[0].text for c in complete(client, echo=True, stream=True)) == PROMPT + ANSWER


@pytest.mark.parametrize("stop,text", [("4", "23"), (["40", "x"], "23"), ("99", ANSWER), (["0"], "234")])
def test_a_stop_cuts_and_is_not_in_the_text(client, stop, text):
    whole = complete(client, stop=stop).choices[0]
    assert (whole.text, whole.finish_reason) == (text, "stop")
    assert "".join(c.choices[0].text for c in complete(client, stop=stop, stream=True)) == text


def test_length_is_told_in_both_forms(client):
    whole = chat(client, max_tokens=2).choices[0]
    assert (whole.message.content, whole.finish_reason) == ("23", "length")
    chunks = list(chat(client, max_completion_tokens=2, stream=True))
    assert chunks[-1].choices[0].finish_reason == "length"


def test_more_tokens_than_there_is_room_for_do_not_hang(client):
    reply = complete(client, max_tokens=100_000, extra_body={"ignore_eos": True})
    assert reply.choices[0].finish_reason == "length"
    assert reply.usage.total_tokens == 256  # The context of the pool's models.


def test_a_prompt_beyond_the_context_is_refused_with_the_numbers(client):
    with pytest.raises(openai.BadRequestError) as caught:
        chat(client, "x" * 300)
    assert caught.value.code == "context_length_exceeded"
    assert caught.value.param == "messages"
    assert "256" in caught.value.message and "301" in caught.value.message


def test_logprobs_of_a_chat(client):
    content = chat(client, logprobs=True, top_logprobs=3).choices[0].logprobs.content
    assert "".join(token.token for token in content) == ANSWER
    for token in content:
        assert bytes(token.bytes).decode() == token.token
        assert len(token.top_logprobs) == 3
        assert token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob >= token.top_logprobs[2].logprob
        assert token.logprob <= 0
    bare = chat(client, logprobs=True).choices[0].logprobs.content
    assert all(token.top_logprobs == [] for token in bare)
    streamed = [t for c in chat(client, logprobs=True, stream=True) if c.choices[0].logprobs
                for t in c.choices[0].logprobs.content]
    assert [(t.token, t.logprob) for t in streamed] == [(t.token, t.logprob) for t in bare]


def test_logprobs_of_a_completion(client):
    logprobs = complete(client, logprobs=2).choices[0].logprobs
    assert logprobs.tokens == list(ANSWER)
    assert logprobs.text_offset == [0, 1, 2, 3]
    assert len(logprobs.token_logprobs) == 4
    assert all(token in top for token, top in zip(logprobs.tokens, logprobs.top_logprobs))


def test_one_seed_gives_one_text_alone_and_among_others(client):
    def sample(seed):
        return complete(client, "B([", max_tokens=24, temperature=1.5, seed=seed, extra_body={"ignore_eos": True}).choices[0].text

    alone = sample(7)
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(sample, [7, 1, 7, 2, 7, 3, 7, 4]))
    assert together[::2] == [alone] * 4
    assert len(set(together)) > 1


def test_null_fields_are_absent(http):
    body = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}]}
    for name in ("max_tokens", "stop", "seed", "temperature", "top_p", "n", "tools", "tool_choice", "stream",
                 "stream_options", "logprobs", "top_logprobs", "logit_bias", "response_format", "user"):
        body[name] = None
    reply = http.post("/v1/chat/completions", json=body)
    assert reply.status_code == 200, reply.text
    assert reply.json()["choices"][0]["message"]["content"] == ANSWER


def test_unknown_fields_are_ignored(client):
    assert chat(client, extra_body={"surprise": {"a": 1}}).choices[0].message.content == ANSWER


def test_logit_bias_forbids_a_token(client):
    biased = chat(client, logit_bias={str(ord("2")): -100})
    assert "2" not in biased.choices[0].message.content


def test_text_that_is_not_ascii_arrives_whole(client):
    """Forced bytes: each token is one byte of a four-byte character."""
    bias = {str(byte): 100 for byte in "\N{GRINNING FACE}".encode()}
    more = {"extra_body": {"ignore_eos": True}, "max_tokens": 12, "temperature": 2.0, "logit_bias": bias, "seed": 5}
    whole = complete(client, **more).choices[0].text
    streamed = "".join(c.choices[0].text for c in complete(client, stream=True, **more))
    assert streamed == whole


@pytest.mark.parametrize("body,param", [
    ({"temperature": 3}, "temperature"), ({"n": 0}, "n"), ({"max_tokens": -1}, "max_tokens"), ({"stop": 7}, "stop"),
    ({"messages": []}, "messages"), ({"messages": [{"role": "user"}]}, "messages[0].content"),
])
def test_bad_fields_are_refused_by_name(http, body, param):
    given = {"model": MODEL, "messages": [{"role": "user", "content": "x"}], **body}
    reply = http.post("/v1/chat/completions", json=given)
    assert reply.status_code == 400
    assert reply.json()["error"]["param"] == param
    assert reply.json()["error"]["type"] == "invalid_request_error"


def test_errors_are_the_clients_own_exceptions(client, url):
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "x"}])
    assert missing.value.code == "model_not_found"
    assert missing.value.response.headers["x-should-retry"] == "false"
    with pytest.raises(openai.BadRequestError):
        complete(client, suffix="x")
    assert missing.value.request_id


def test_models_are_listed_and_found(client):
    listed = {model.id: model for model in client.models.list()}
    assert {"A-arith", "B-count", "C-fecha"} <= set(listed)
    assert all(model.object == "model" and model.owned_by for model in listed.values())
    assert client.models.retrieve(MODEL).id == MODEL
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("org/nobody")


def test_tokenize_counts_what_usage_counts(client, http):
    messages = [{"role": "user", "content": PROMPT}]
    tokenized = http.post("/tokenize", json={"model": MODEL, "messages": messages}).json()
    assert tokenized["count"] == len(tokenized["tokens"]) == chat(client).usage.prompt_tokens
    assert tokenized["tokens"].count(257) == 1  # One beginning of the sequence, not two.
    plain = http.post("/tokenize", json={"model": MODEL, "prompt": PROMPT}).json()
    assert plain["count"] == complete(client).usage.prompt_tokens
    text = http.post("/detokenize", json={"model": MODEL, "tokens": plain["tokens"][1:]}).json()["prompt"]
    assert text == PROMPT


def test_the_stream_is_server_sent_events_to_the_letter(http):
    body = {"model": MODEL, "messages": [{"role": "user", "content": PROMPT}], "stream": True}
    with http.stream("POST", "/v1/chat/completions", json=body) as reply:
        assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
        lines = reply.read().decode("utf-8", errors="strict").split("\n")
    data = [line for line in lines if line]
    assert all(line.startswith(("data: ", ":")) for line in data)
    assert data[-1] == "data: [DONE]"
    for line in data[:-1]:
        if line.startswith("data: "):
            assert json.loads(line[6:])["choices"][0]["finish_reason"] in (None, "stop")
